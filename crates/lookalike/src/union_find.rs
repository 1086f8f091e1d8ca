//! Union-find with path halving; the smallest number of a group is its root.

/// Things by number, in groups.
pub struct UnionFind {
    parent: Vec<u32>,
}

impl UnionFind {
    /// Everything alone.
    #[must_use]
    pub fn new(count: usize) -> UnionFind {
        UnionFind { parent: (0..).take(count).collect() }
    }

    /// Makes the groups of two things one.
    pub fn join(&mut self, left: u32, right: u32) {
        let (left, right) = (self.root(left), self.root(right));
        let (root, child) = (left.min(right), left.max(right));
        self.parent[child as usize] = root;
    }

    /// The root of a thing's group.
    pub fn root(&mut self, thing: u32) -> u32 {
        let mut at = thing;
        while self.parent[at as usize] != at {
            self.parent[at as usize] = self.parent[self.parent[at as usize] as usize];
            at = self.parent[at as usize];
        }
        at
    }
}
