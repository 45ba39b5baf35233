//! Many reads at once: over datasets of one file or of several.

use super::Dataset;
use std::sync::Mutex;
use tensilo_core::array::Selection;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Monitor, Result};

/// One of many reads: what, and into which buffer, as stored elements.
#[derive(Debug)]
pub struct Request<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// What of it.
    pub selection: &'a Selection,
    /// Where to; exactly as long as the selected elements.
    pub bytes: &'a mut [u8],
}

/// From this many requests on, each is read by one thread, and threads share the requests.
const MANY: usize = 4;

/// Carries out many reads. Few are done one after the other, each on all threads; many are shared out, each to one
/// thread. The monitor hears of finished bytes.
///
/// ```no_run
/// use tensilo_core::{Quiet, array::Selection};
/// use tensilo_hdf5::read::{File, Request, read_multi};
/// let file = File::open("scan.h5")?;
/// let (x, y) = (file.dataset("x")?, file.dataset("y")?);
/// let (mut a, mut b) = (vec![0; 800], vec![0; 800]);
/// read_multi(
///     vec![
///         Request { dataset: &x, selection: &Selection::All, bytes: &mut a },
///         Request { dataset: &y, selection: &Selection::All, bytes: &mut b },
///     ],
///     &Quiet,
/// )?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
///
/// # Errors
/// Of the first request, in the order given, that fails; `Missing` names what all of them miss.
pub fn read_multi(requests: Vec<Request<'_>>, monitor: &dyn Monitor) -> Result<()> {
    let Some(first) = requests.first() else { return Ok(()) };
    let total = requests.iter().map(|r| r.bytes.len() as u64).sum();
    let threads = first.dataset.file().options().threads;
    let outer = if requests.len() < MANY { Threads::ONE } else { threads };
    let inner = if outer.get() > 1 { Some(Threads::ONE) } else { None };
    let missing = Mutex::new(Vec::new());
    let slots: Vec<Mutex<Option<Request<'_>>>> = requests.into_iter().map(|r| Mutex::new(Some(r))).collect();
    outer.for_each(
        slots.len(),
        monitor,
        "reading",
        total,
        || (),
        |(), i, done| {
            let request = slots[i].lock().unwrap_or_else(|p| p.into_inner()).take();
            let Some(Request { dataset, selection, bytes }) = request else { return Ok(()) };
            let n = bytes.len() as u64;
            match dataset.read_on(selection, bytes, inner) {
                Err(e) if e.kind() == ErrorKind::Missing => {
                    missing.lock().unwrap_or_else(|p| p.into_inner()).extend_from_slice(e.missing_ranges());
                }
                other => other?,
            }
            done.add(n);
            Ok(())
        },
    )?;
    let missing = missing.into_inner().unwrap_or_else(|p| p.into_inner());
    if missing.is_empty() { Ok(()) } else { Err(Error::missing(missing)) }
}
