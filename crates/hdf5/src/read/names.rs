//! The names of groups in which many names were looked up: then the whole group is listed once, and a look-up costs
//! nothing of the file. Opening one object of many lists nothing.

use crate::format::Address;
use crate::object::{self, LinkTarget, ObjectHeader};
use crate::space::FileSpace;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensilo_core::Budget;
use tensilo_core::limits::Charge;

/// Look-ups in a group before it is listed for the first time; then each time that their number has doubled.
const FIRST: u64 = 32;
/// As many links as this are listed at the cost of one look-up.
const LINKS_PER_LOOKUP: u64 = 64;
/// Bytes of names that are kept for a file, and groups whose look-ups are counted.
const KEPT: u64 = 32 << 20;
const COUNTED: usize = 4096;

/// What is known of the groups of one file.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<u64, Group>>);

#[derive(Debug, Default)]
struct Group {
    lookups: u64,
    links: Option<Listed>,
}

#[derive(Debug)]
struct Listed {
    by_name: HashMap<Vec<u8>, LinkTarget>,
    bytes: u64,
    _charge: Charge,
}

impl Names {
    /// Where a name of a group leads, `Some(None)` where it has no such name; `None` when the group was not listed.
    pub(super) fn find(&self, group: Address, name: &[u8]) -> Option<Option<LinkTarget>> {
        let groups = self.lock();
        let listed = groups.get(&group.0)?.links.as_ref()?;
        Some(listed.by_name.get(name).cloned())
    }

    /// Counts a look-up, and lists the group when there were enough. What cannot be listed is not: the look-up itself
    /// will say what is wrong.
    pub(super) fn count(&self, space: &FileSpace, group: &ObjectHeader) {
        let lookups = {
            let mut groups = self.lock();
            if groups.len() >= COUNTED && !groups.contains_key(&group.address.0) {
                groups.retain(|_, g| g.links.is_some());
            }
            let entry = groups.entry(group.address.0).or_default();
            entry.lookups += 1;
            entry.lookups
        };
        if lookups < FIRST || !lookups.is_power_of_two() {
            return;
        }
        let most = lookups.saturating_mul(LINKS_PER_LOOKUP);
        let Ok(Some(links)) = object::links_up_to(space, group, most) else { return };
        let Some(listed) = Listed::new(links, space.budget()) else { return };
        let mut groups = self.lock();
        let others: u64 = groups.values().filter_map(|g| g.links.as_ref()).map(|l| l.bytes).sum();
        if others.saturating_add(listed.bytes) > KEPT {
            groups.retain(|_, g| g.links.is_none());
        }
        groups.entry(group.address.0).or_default().links = Some(listed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    /// `None` where that would take too much memory.
    fn new(links: Vec<object::Link>, budget: &Budget) -> Option<Self> {
        let entry = size_of::<(Vec<u8>, LinkTarget)>() as u64 * 2;
        let beside = |target: &LinkTarget| match target {
            LinkTarget::Hard(_) => 0,
            LinkTarget::Soft(to) => to.len(),
            LinkTarget::External { file, object } => file.len() + object.len(),
            LinkTarget::UserDefined { data, .. } => data.len(),
        };
        let bytes = links.iter().map(|l| entry + (l.name.len() + beside(&l.target)) as u64).sum();
        if bytes > KEPT {
            return None;
        }
        let charge = budget.bytes(bytes, "the names of a group").ok()?;
        let mut by_name = HashMap::with_capacity(links.len());
        for link in links {
            // Of two links of one name, which no sound file has, a search finds the first.
            by_name.entry(link.name).or_insert(link.target);
        }
        Some(Self { by_name, bytes, _charge: charge })
    }
}
