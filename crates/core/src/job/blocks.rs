//! All jobs by identity, shared with copies until they change ([`SharedMap`]): while a snapshot is written, a change copies one
//! block of pointers and one job.

use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{Job, JobId};
use crate::shared_map::SharedMap;

/// Jobs by identity.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Blocks(SharedMap<JobId, Arc<Job>>);

impl Blocks {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn find(&self, id: JobId) -> Option<&Job> {
        self.0.get(&id).map(|job| &**job)
    }

    pub(crate) fn find_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.0.find_mut(&id).map(Arc::make_mut)
    }

    /// Adds a job whose identity is new.
    pub(crate) fn insert(&mut self, job: Job) {
        let before = self.0.insert(job.id, Arc::new(job));
        assert!(before.is_none(), "an identity is given once");
    }

    pub(crate) fn remove(&mut self, id: JobId) -> Option<Arc<Job>> {
        self.0.remove(&id)
    }

    /// All jobs with a higher identity, in order.
    pub(crate) fn iter_after(&self, id: JobId) -> impl Iterator<Item = &Job> {
        self.0.iter_after(Some(&id)).map(|(_, job)| &**job)
    }

    /// All jobs, by identity.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.0.iter().map(|(_, job)| &**job)
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Blocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut jobs = serializer.serialize_seq(Some(self.len()))?;
        for job in self.iter() {
            jobs.serialize_element(job)?;
        }
        jobs.end()
    }
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Blocks, D::Error> {
        struct Jobs;
        impl<'de> Visitor<'de> for Jobs {
            type Value = Blocks;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("jobs in order of their identities")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut jobs: A) -> Result<Blocks, A::Error> {
                let mut blocks = Blocks::default();
                let mut last = None;
                while let Some(job) = jobs.next_element::<Job>()? {
                    if last >= Some(job.id) {
                        return Err(serde::de::Error::custom("jobs out of order"));
                    }
                    last = Some(job.id);
                    blocks.insert(job);
                }
                Ok(blocks)
            }
        }
        deserializer.deserialize_seq(Jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Body, QueueId};
    use crate::name::Name;

    fn job(id: u64) -> Job {
        Job {
            id: JobId(id),
            name: Name::new(&format!("j{id}")).unwrap(),
            queue: QueueId(1),
            place: id,
            class: 0,
            deaths: 0,
            rejected_from: None,
            body: Body::default(),
            at: 0,
            created: 0,
            creator: Arc::from(""),
            hops: Vec::new(),
        }
    }

    #[test]
    fn a_copy_does_not_see_later_changes() {
        let mut blocks = Blocks::default();
        for id in 1..=2000 {
            blocks.insert(job(id));
        }
        let copy = blocks.clone();
        blocks.find_mut(JobId(7)).unwrap().deaths = 3;
        for id in 500..=1500 {
            assert!(blocks.remove(JobId(id)).is_some());
        }
        blocks.insert(job(2001));
        assert_eq!((blocks.len(), copy.len()), (1000, 2000));
        assert_eq!(copy.find(JobId(7)).unwrap().deaths, 0);
        assert!(copy.find(JobId(600)).is_some() && blocks.find(JobId(600)).is_none());
        assert_eq!(copy.iter().count(), 2000);
        let after: Vec<u64> = blocks.iter_after(JobId(499)).map(|job| job.id.0).collect();
        assert_eq!((after[0], after.len()), (1501, 501));
        assert!(blocks.remove(JobId(600)).is_none());
    }

    #[test]
    fn jobs_come_back_from_their_bytes() {
        let mut blocks = Blocks::default();
        for id in [3, 600, 601, 90_000] {
            blocks.insert(job(id));
        }
        let bytes = postcard::to_allocvec(&blocks).unwrap();
        assert_eq!(postcard::from_bytes::<Blocks>(&bytes).unwrap(), blocks);
    }
}
