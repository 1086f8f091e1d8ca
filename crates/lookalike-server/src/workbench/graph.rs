//! The verified links of a cluster, drawn: pages on a circle, the kept one at the top, the weakest link marked.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::fmt::Write as _;

use super::reader::LinkRow;

/// Pages that are drawn; more cannot be told apart.
pub(super) const MOST_NODES: usize = 48;

/// A drawing, and what to say of it.
pub(super) struct Graph {
    pub(super) svg: String,
    /// The link of lowest similarity among those that are drawn.
    pub(super) weakest: Option<LinkRow>,
    pub(super) nodes: usize,
    pub(super) links: usize,
}

/// Draws the links of the cluster of `kept`; `labels` says what to call the pages it is given for.
pub(super) fn draw(kept: i64, links: &[LinkRow], labels: &HashMap<i64, String>) -> Graph {
    let mut nodes = vec![kept];
    for link in links {
        for end in [link.left, link.right] {
            if nodes.len() < MOST_NODES && !nodes.contains(&end) {
                nodes.push(end);
            }
        }
    }
    let (size, radius) = (360.0, 150.0);
    let place: HashMap<i64, (f64, f64)> = nodes
        .iter()
        .enumerate()
        .map(|(number, &node)| {
            let angle = 2.0 * PI * number as f64 / nodes.len() as f64 - PI / 2.0;
            (node, (size / 2.0 + radius * angle.cos(), size / 2.0 + radius * angle.sin()))
        })
        .collect();
    let drawn: Vec<&LinkRow> =
        links.iter().filter(|link| place.contains_key(&link.left) && place.contains_key(&link.right)).collect();
    let weakest = drawn.iter().min_by(|a, b| a.similarity.total_cmp(&b.similarity)).copied().cloned();
    let mut svg = format!(
        "<svg class=\"graph\" viewBox=\"0 0 {size} {size}\" role=\"img\" aria-label=\"{} pages and {} verified links\">",
        nodes.len(),
        drawn.len()
    );
    // The weakest link is drawn last, above the others. Writing to a string cannot fail.
    let is_weakest = |link: &LinkRow| {
        drawn.len() > 1
            && weakest.as_ref().is_some_and(|weakest| (weakest.left, weakest.right) == (link.left, link.right))
    };
    let mut ordered = drawn.clone();
    ordered.sort_by_key(|link| is_weakest(link));
    for link in ordered {
        let ((x1, y1), (x2, y2)) = (place[&link.left], place[&link.right]);
        let class = if is_weakest(link) { "weakest" } else { "link" };
        let width = 0.6 + 2.4 * link.similarity.clamp(0.0, 1.0);
        let _ = write!(
            svg,
            "<a href=\"/pair/{}/{}\"><line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke-width=\"{width:.1}\"/><title>{:.4}</title></a>",
            link.left, link.right, link.similarity
        );
    }
    for &node in &nodes {
        let (x, y) = place[&node];
        let class = if node == kept { "node kept" } else { "node" };
        let label = labels.get(&node).map_or_else(String::new, |label| escape(label));
        let r = if node == kept { 9 } else { 6 };
        let _ = write!(
            svg,
            "<g><circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/><title>{label}</title></g>"
        );
    }
    svg.push_str("</svg>");
    Graph { svg, weakest, nodes: nodes.len(), links: drawn.len() }
}

/// Text in markup.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(left: i64, right: i64, similarity: f64) -> LinkRow {
        LinkRow { left, right, similarity, page_similarity: None }
    }

    #[test]
    fn the_weakest_link_is_marked_and_names_are_harmless() {
        let links = [link(1, 2, 0.9), link(1, 3, 0.7), link(2, 3, 0.8)];
        let labels = HashMap::from([(1, "<script>alert(1)</script>\"".to_owned())]);
        let graph = draw(1, &links, &labels);
        assert_eq!((graph.nodes, graph.links, graph.weakest.map(|link| link.right)), (3, 3, Some(3)));
        assert_eq!(graph.svg.matches("class=\"weakest\"").count(), 1);
        assert!(graph.svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;") && !graph.svg.contains("<script"));
    }

    #[test]
    fn large_clusters_are_drawn_in_part() {
        let links: Vec<LinkRow> = (1..500).map(|page| link(0, page, 0.9)).collect();
        let graph = draw(0, &links, &HashMap::new());
        assert_eq!((graph.nodes, graph.links), (MOST_NODES, MOST_NODES - 1));
        assert_eq!(draw(7, &[], &HashMap::new()).nodes, 1);
    }
}
