//! One memory budget for a whole run.

use wasmtime::{ResourceLimiter, Result};

/// A table element is a pointer on the host.
const TABLE_ELEMENT_BYTES: usize = 8;
/// Core instances, tables and memories of one run; real toolchains stay under a quarter of it. What
/// an instance holds beside its memories and tables is in no budget, and instantiating one has no
/// epoch check.
const MAX_OBJECTS: usize = 100;

/// Counts every linear memory and table of a run against one limit.
///
/// wasmtime asks per memory and per table, so a component with a hundred memories would get a
/// hundred times a per-memory limit.
pub struct MemoryBudget {
    limit_bytes: usize,
    used_bytes: usize,
    peak_bytes: usize,
    denials: u32,
}

impl MemoryBudget {
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            used_bytes: 0,
            peak_bytes: 0,
            denials: 0,
        }
    }

    /// Growths that were refused.
    #[must_use]
    pub fn denials(&self) -> u32 {
        self.denials
    }

    /// The most the run held at once.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes
    }

    fn grow(&mut self, current_bytes: usize, desired_bytes: usize) -> bool {
        let added = desired_bytes.saturating_sub(current_bytes);
        match self.used_bytes.checked_add(added) {
            Some(total) if total <= self.limit_bytes => {
                self.used_bytes = total;
                self.peak_bytes = self.peak_bytes.max(total);
                true
            }
            _ => {
                self.denials = self.denials.saturating_add(1);
                false
            }
        }
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        // Past its own maximum the growth fails anyway; charging it would leak budget.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow(current, desired))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow(
            current.saturating_mul(TABLE_ELEMENT_BYTES),
            desired.saturating_mul(TABLE_ELEMENT_BYTES),
        ))
    }

    fn instances(&self) -> usize {
        MAX_OBJECTS
    }

    fn tables(&self) -> usize {
        MAX_OBJECTS
    }

    fn memories(&self) -> usize {
        MAX_OBJECTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_all_memories_and_tables_together() {
        let mut budget = MemoryBudget::new(300_000);

        assert!(budget.memory_growing(0, 131_072, None).unwrap());
        assert!(budget.memory_growing(0, 131_072, None).unwrap());
        assert!(!budget.memory_growing(131_072, 196_608, None).unwrap());
        assert!(budget.table_growing(0, 4_000, None).unwrap());
        assert!(!budget.table_growing(4_000, 8_000, None).unwrap());
        assert_eq!(budget.denials(), 2);
        assert_eq!(budget.peak_bytes(), 2 * 131_072 + 32_000);
    }

    #[test]
    fn charges_nothing_for_growth_past_the_maximum() {
        let mut budget = MemoryBudget::new(200_000);

        assert!(!budget.memory_growing(0, 131_072, Some(65_536)).unwrap());
        assert!(budget.memory_growing(0, 196_608, None).unwrap());
        assert_eq!(budget.denials(), 0);
    }

    #[test]
    fn survives_sizes_that_overflow() {
        let mut budget = MemoryBudget::new(usize::MAX);

        assert!(budget.table_growing(0, usize::MAX, None).unwrap());
        assert!(!budget.memory_growing(0, usize::MAX, None).unwrap());
    }
}
