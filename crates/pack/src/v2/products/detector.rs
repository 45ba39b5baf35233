//! A virtual detector that moves.

use super::Request;
use crate::products::Sum;
use crate::v2::read::Pack;
use tensilo_core::{Error, Monitor, Result};

/// A virtual detector and its image.
#[derive(Debug, Clone)]
pub struct VirtualDetector<S = u64> {
    pack: Pack,
    mask: Vec<u8>,
    image: Vec<S>,
}

impl<S: Sum> VirtualDetector<S> {
    pub(super) fn new(pack: Pack, mask: &[u8], monitor: &dyn Monitor) -> Result<Self> {
        let image = pack.virtual_image_as(mask, monitor)?;
        Ok(Self { pack, mask: mask.to_vec(), image })
    }

    /// The sum of every scan over the mask.
    pub fn image(&self) -> &[S] {
        &self.image
    }

    /// The mask.
    pub fn mask(&self) -> &[u8] {
        &self.mask
    }

    /// Moves the detector to another mask: pixels that come are added, those that go are subtracted, and only blocks with
    /// such pixels are read. Where more pixels change than the new mask has, it is summed afresh.
    ///
    /// # Errors
    /// As [`Pack::virtual_image`]; the detector is then where it was.
    pub fn move_to(&mut self, mask: &[u8], monitor: &dyn Monitor) -> Result<()> {
        if mask.len() != self.mask.len() {
            return Err(Error::invalid(format!(
                "a mask of {} bytes for {} pixels",
                mask.len(),
                self.mask.len()
            )));
        }
        let pairs = || mask.iter().zip(&self.mask).map(|(new, old)| (*new != 0, *old != 0));
        let changed = pairs().filter(|(new, old)| new != old).count();
        if changed >= mask.iter().filter(|m| **m != 0).count() {
            self.image = self.pack.virtual_image_as(mask, monitor)?;
        } else if changed > 0 {
            let which = |f: fn((bool, bool)) -> bool| pairs().map(|p| u8::from(f(p))).collect::<Vec<u8>>();
            let masks = vec![which(|(new, old)| new && !old), which(|(new, old)| old && !new)];
            let sums = self.pack.products_as::<S>(&Request { masks, ..Request::default() }, monitor)?.masks;
            for (to, (come, gone)) in self.image.iter_mut().zip(sums[0].iter().zip(&sums[1])) {
                *to = S::of_bits(to.bits().wrapping_add(come.bits()).wrapping_sub(gone.bits()));
            }
        }
        self.mask = mask.to_vec();
        Ok(())
    }
}
