//! All clusters in memory, a few bytes each, in every order in which they can be listed.
//!
//! In: the table of groups. Out: which of them are listed for a filter, and what stands beside one. What words, tags and sites a
//! group has is asked of SQLite, as a set of groups; the rest is one pass over an order.

use std::collections::HashSet;

use rusqlite::Connection;

use super::failure::Outcome;
use super::filter::{Filter, SORTS, match_expression};

/// The groups of a result. Groups of two pages or more have positions, ascending by their numbers; single pages come behind them.
pub(super) struct Groups {
    numbers: Vec<u32>,
    pages: Vec<u32>,
    kinds: Vec<u8>,
    /// For each of [`SORTS`] the positions in that order, and the place of each position in it.
    orders: Vec<(Vec<u32>, Vec<u32>)>,
    /// The numbers of single pages, ascending.
    singles: Vec<u32>,
    /// Sites by how many clusters are kept there, the most first.
    pub(super) sites: Vec<(String, i64)>,
}

/// Sites that are offered to choose from.
const OFFERED_SITES: usize = 200;

/// Groups that are listed for a filter: all that a set of numbers leaves.
struct Chosen {
    least: u32,
    most: u32,
    kind: u8,
    /// Each of these must have a group.
    within: Vec<HashSet<u32>>,
    /// None of these may.
    without: Option<HashSet<u32>>,
}

impl Chosen {
    fn holds(&self, number: u32, pages: u32, kinds: u8) -> bool {
        (self.least..=self.most).contains(&pages)
            && (self.kind == 0 || kinds & self.kind != 0)
            && self.within.iter().all(|set| set.contains(&number))
            && self.without.as_ref().is_none_or(|set| !set.contains(&number))
    }
}

impl Groups {
    /// Reads the table.
    pub(super) fn load(connection: &Connection) -> Outcome<Groups> {
        let mut groups = Groups {
            numbers: Vec::new(),
            pages: Vec::new(),
            kinds: Vec::new(),
            orders: Vec::new(),
            singles: Vec::new(),
            sites: Vec::new(),
        };
        let (mut weakest, mut mean, mut sites, mut site): (Vec<f64>, Vec<f64>, Vec<u32>, Vec<String>) =
            Default::default();
        let mut query = connection.prepare("SELECT n, pages, kinds, weakest, mean, sites, site FROM grp ORDER BY n")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (number, pages): (u32, u32) = (row.get(0)?, row.get(1)?);
            if pages < 2 {
                groups.singles.push(number);
                continue;
            }
            groups.numbers.push(number);
            groups.pages.push(pages);
            groups.kinds.push(row.get(2)?);
            weakest.push(row.get(3)?);
            mean.push(row.get(4)?);
            sites.push(row.get(5)?);
            site.push(row.get(6)?);
        }
        let pages = &groups.pages;
        for sort in &SORTS {
            let mut order: Vec<u32> = (0..).take(pages.len()).collect();
            // Ties stay in the order of the pages.
            match sort.name {
                "weakest" => order.sort_by(|&a, &b| weakest[a as usize].total_cmp(&weakest[b as usize])),
                "similarity" => order.sort_by(|&a, &b| mean[a as usize].total_cmp(&mean[b as usize])),
                "sites" => order.sort_by_key(|&at| std::cmp::Reverse(sites[at as usize])),
                // Those without a site come last.
                "site" => order.sort_by_key(|&at| (site[at as usize].is_empty(), &site[at as usize])),
                _ => order.sort_by_key(|&at| std::cmp::Reverse(pages[at as usize])),
            }
            let mut places = vec![0; order.len()];
            (0..).zip(&order).for_each(|(place, &at)| places[at as usize] = place);
            groups.orders.push((order, places));
        }
        let mut counts: std::collections::HashMap<&str, i64> = std::collections::HashMap::new();
        site.iter().filter(|site| !site.is_empty()).for_each(|site| *counts.entry(site).or_default() += 1);
        let mut named: Vec<(String, i64)> = counts.into_iter().map(|(site, count)| (site.to_owned(), count)).collect();
        named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        named.truncate(OFFERED_SITES);
        groups.sites = named;
        Ok(groups)
    }

    /// Some of the groups of a filter, from one on, and how many there are.
    pub(super) fn listed(
        &self,
        connection: &Connection,
        filter: &Filter,
        asks: Asks,
        from: usize,
        most: usize,
    ) -> Outcome<(Vec<u32>, usize)> {
        let chosen = chosen(connection, filter, asks)?;
        let (mut found, mut count) = (Vec::new(), 0);
        let mut take = |number: u32| {
            if count >= from && found.len() < most {
                found.push(number);
            }
            count += 1;
        };
        for &at in &self.orders[filter.sort_number()].0 {
            let at = at as usize;
            if chosen.holds(self.numbers[at], self.pages[at], self.kinds[at]) {
                take(self.numbers[at]);
            }
        }
        if chosen.least < 2 {
            self.singles.iter().filter(|&&number| chosen.holds(number, 1, 0)).for_each(|&number| take(number));
        }
        Ok((found, count))
    }

    /// The groups before and behind one, whether or not it is listed itself.
    pub(super) fn beside(
        &self,
        connection: &Connection,
        filter: &Filter,
        asks: Asks,
        group: u32,
    ) -> Outcome<[Option<u32>; 2]> {
        let chosen = chosen(connection, filter, asks)?;
        let (order, places) = &self.orders[filter.sort_number()];
        let holds = |&at: &u32| {
            let at = at as usize;
            chosen.holds(self.numbers[at], self.pages[at], self.kinds[at]).then(|| self.numbers[at])
        };
        let single = |&number: &u32| (chosen.least < 2 && chosen.holds(number, 1, 0)).then_some(number);
        Ok(match self.numbers.binary_search(&group) {
            Ok(at) => {
                let place = places[at] as usize;
                let next = order[place + 1..].iter().find_map(holds);
                [order[..place].iter().rev().find_map(holds), next.or_else(|| self.singles.iter().find_map(single))]
            }
            Err(_) => {
                let place = self.singles.partition_point(|&number| number < group);
                let before = self.singles[..place].iter().rev().find_map(single);
                let behind = self.singles[place..].iter().filter(|&&number| number != group).find_map(single);
                [before.or_else(|| order.iter().rev().find_map(holds)), behind]
            }
        })
    }
}

/// Who asks, and whether texts can be searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asks {
    pub(super) coder: i64,
    pub(super) has_texts: bool,
}

fn chosen(connection: &Connection, filter: &Filter, asks: Asks) -> Outcome<Chosen> {
    let set = |query: &str, values: &[&dyn rusqlite::ToSql]| -> Outcome<HashSet<u32>> {
        let mut query = connection.prepare_cached(query)?;
        let rows = query.query_map(values, |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let mut chosen = Chosen {
        least: filter.least(),
        most: filter.most(),
        kind: filter.kind_bit(),
        within: Vec::new(),
        without: None,
    };
    let site = filter.site.trim();
    if !site.is_empty() {
        chosen.within.push(set("SELECT grp FROM grp_site WHERE site = ?1", &[&site])?);
    }
    match filter.tag.as_str() {
        "todo" => chosen.without = Some(set("SELECT DISTINCT grp FROM grp_tag WHERE coder = ?1", &[&asks.coder])?),
        "mine" => chosen.within.push(set("SELECT DISTINCT grp FROM grp_tag WHERE coder = ?1", &[&asks.coder])?),
        "any" => chosen.within.push(set("SELECT DISTINCT grp FROM grp_tag", &[])?),
        tag => {
            if let Ok(tag) = tag.parse::<i64>() {
                chosen.within.push(set("SELECT DISTINCT grp FROM grp_tag WHERE tag = ?1", &[&tag])?);
            }
        }
    }
    if !filter.q.trim().is_empty() {
        let words = match_expression(&filter.q);
        let mut found = HashSet::new();
        if !words.is_empty() {
            let table = if asks.has_texts { "grp_words" } else { "grp_names" };
            let singles = ["single_names"].into_iter().filter(|_| chosen.least < 2);
            for table in [table].into_iter().chain(singles) {
                found.extend(set(&format!("SELECT rowid FROM {table} WHERE {table} MATCH ?1"), &[&words])?);
            }
        }
        chosen.within.push(found);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE grp (n, pages, weakest, mean, sites, site, kinds);
                 INSERT INTO grp VALUES (1, 3, 0.9, 0.95, 1, 'b.example', 4), (4, 1, 1.0, 1.0, 0, '', 0), (5, 7, 0.7, 0.8, 2, '', 1),
                                        (9, 3, 0.8, 0.85, 3, 'a.example', 5), (12, 1, 1.0, 1.0, 1, 'a.example', 0);
                 CREATE TABLE grp_site (site, grp); INSERT INTO grp_site VALUES ('a.example', 9), ('a.example', 12), ('a.example', 5);
                 CREATE TABLE grp_tag (tag, coder, grp, pages); INSERT INTO grp_tag VALUES (1, 1, 5, 7), (2, 2, 9, 3);
                 CREATE VIRTUAL TABLE grp_names USING fts5 (names, content='');
                 CREATE VIRTUAL TABLE single_names USING fts5 (names, content='');
                 INSERT INTO grp_names (rowid, names) VALUES (1, 'ferry'), (5, 'night ferry'), (9, 'bees');
                 INSERT INTO single_names (rowid, names) VALUES (4, 'ferry');",
            )
            .unwrap();
        connection
    }

    fn filter(parts: &str) -> Filter {
        let mut filter = Filter::default();
        for part in parts.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap();
            *match name {
                "q" => &mut filter.q,
                "sort" => &mut filter.sort,
                "tag" => &mut filter.tag,
                "site" => &mut filter.site,
                "kind" => &mut filter.kind,
                "least" => &mut filter.least,
                _ => &mut filter.most,
            } = value.to_owned();
        }
        filter
    }

    #[test]
    fn groups_are_sorted_and_filtered() {
        let connection = tables();
        let groups = Groups::load(&connection).unwrap();
        let asks = Asks { coder: 1, has_texts: false };
        for (asked, expected) in [
            ("", vec![5, 1, 9]),
            ("sort=weakest", vec![5, 9, 1]),
            ("sort=similarity", vec![5, 9, 1]),
            ("sort=sites", vec![9, 5, 1]),
            ("sort=site", vec![9, 1, 5]),
            ("least=1", vec![5, 1, 9, 4, 12]),
            ("least=1&site=a.example", vec![5, 9, 12]),
            ("least=4", vec![5]),
            ("most=3", vec![1, 9]),
            ("kind=exact", vec![5, 9]),
            ("tag=todo", vec![1, 9]),
            ("tag=mine", vec![5]),
            ("tag=any", vec![5, 9]),
            ("tag=2", vec![9]),
            ("q=ferry", vec![5, 1]),
            ("q=ferry&least=1", vec![5, 1, 4]),
            ("q=\"night ferry\"", vec![5]),
            ("q=!?", vec![]),
        ] {
            let found = groups.listed(&connection, &filter(asked), asks, 0, 50).unwrap();
            assert_eq!(found, (expected.clone(), expected.len()), "{asked}");
            // The neighbours are those of the list, from one end to the other.
            for (at, &group) in expected.iter().enumerate() {
                let around = [at.checked_sub(1).map(|at| expected[at]), expected.get(at + 1).copied()];
                assert_eq!(groups.beside(&connection, &filter(asked), asks, group).unwrap(), around, "{asked} {group}");
            }
        }
        assert_eq!(groups.listed(&connection, &filter(""), asks, 1, 1).unwrap(), (vec![1], 3));
        // One that is no longer listed has neighbours all the same.
        assert_eq!(groups.beside(&connection, &filter("tag=todo"), asks, 5).unwrap(), [None, Some(1)]);
        assert_eq!(groups.sites, [("a.example".to_owned(), 1), ("b.example".to_owned(), 1)]);
    }
}
