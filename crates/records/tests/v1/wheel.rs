//! Both ways with loaderx 0.5.0 itself, from PyPI.

use super::*;
use tensilo_testkit::oracle;

const SCRIPT: &str = r#"
import sys, numpy as np
from loaderx._zrecord import Zrecord
task, path = sys.argv[1:3]
def rec(seed, n): return bytes((seed * 7 + i // 5) % 251 for i in range(n))
def add(z, seeds, codec):
    rs = [rec(s, 1 + s * 13 % 3000) for s in seeds]
    lens = np.array([len(r) for r in rs], np.uint32)
    offs = np.concatenate([[0], np.cumsum(lens)[:-1]]).astype(np.uint64)
    z.append_var(np.frombuffer(b"".join(rs), np.uint8).copy(), offs, lens, codec=codec)
def all_of(z):
    idx = np.arange(len(z), dtype=np.uint64)
    lens = z.lengths(idx)
    offs = np.concatenate([[0], np.cumsum(lens.astype(np.uint64))]).astype(np.uint64)
    dst = np.zeros(int(offs[-1]), np.uint8)
    if len(z): z.gather_var(idx, dst, offs[:-1].copy())
    return lens, dst
with Zrecord(path) as z:
    if task == "write":
        add(z, range(0, 40), "flate"); add(z, range(40, 60), "raw"); z.delete([59, 3, 3, 20])
    if task == "append":
        add(z, range(500, 520), "flate")
    if task == "compact":
        z.delete([0, 2]); z.compact()
    lens, dst = all_of(z)
    sys.stdout.buffer.write(np.uint32(len(lens)).tobytes() + lens.astype('<u4').tobytes() + dst.tobytes())
"#;

/// Lets loaderx do something to a store, and answers all records as it then reads them.
fn loaderx(task: &str, folder: &Path) -> Vec<Vec<u8>> {
    let out = oracle::python_stdout(SCRIPT, [task.as_ref(), folder.as_os_str()], b"");
    let (words, _) = out.as_chunks::<4>();
    let n = u32::from_le_bytes(words[0]) as usize;
    let mut rest = &out[4 + 4 * n..];
    let lens = words[1..=n].iter().map(|w| u32::from_le_bytes(*w) as usize);
    let records: Vec<_> = lens.map(|len| rest.split_off(..len).unwrap().to_vec()).collect();
    assert!(rest.is_empty());
    records
}

fn theirs(seed: usize) -> Vec<u8> {
    (0..1 + seed * 13 % 3000).map(|i| ((seed * 7 + i / 5) % 251) as u8).collect()
}

#[test]
fn stores_go_back_and_forth_between_loaderx_and_us() {
    if !oracle::python_has("loaderx") {
        return oracle::skip("Python with loaderx 0.5.0", 1);
    }
    let temp = oracle::temp_dir();
    let folder = temp.path().join("theirs");
    let mut list = without((0..60).map(theirs).collect(), &[59, 3, 20]);
    assert!(loaderx("write", &folder) == list);

    // Ours reads it, appends, deletes, compacts, appends.
    let store = Zrecord::open(&folder, options()).unwrap();
    assert!(all(&store).unwrap() == list);
    let more: Vec<_> = (100..110).map(|i| record(i, 700)).collect();
    append(&store, &more, Some(Codec::Flate)).unwrap();
    store.delete(&[1, 66, 40]).unwrap();
    list = without([list, more].concat(), &[1, 66, 40]);
    drop(store);
    assert!(loaderx("read", &folder) == list, "after our append and delete");
    Zrecord::open(&folder, options()).unwrap().compact(&Quiet).unwrap();
    assert!(loaderx("read", &folder) == list, "after our compaction");

    // It appends to what we compacted, deletes and compacts; we append to that.
    list.extend((500..520).map(theirs));
    assert!(loaderx("append", &folder) == list);
    list = without(list, &[0, 2]);
    assert!(loaderx("compact", &folder) == list);
    let store = Zrecord::open(&folder, options()).unwrap();
    assert!(all(&store).unwrap() == list);
    append(&store, &[record(3, 5000)], None).unwrap();
    list.push(record(3, 5000));
    drop(store);
    assert!(loaderx("read", &folder) == list);

    // A store that we made.
    let folder = temp.path().join("ours");
    let store = Zrecord::create(&folder, options()).unwrap();
    let mut list: Vec<_> = (0..30).map(|i| record(i, 1 + i as usize * 100)).collect();
    append(&store, &list, None).unwrap();
    drop(store);
    assert!(loaderx("read", &folder) == list);
    list.extend((500..520).map(theirs));
    assert!(loaderx("append", &folder) == list);
    assert!(all(&Zrecord::open(&folder, options()).unwrap()).unwrap() == list);
}
