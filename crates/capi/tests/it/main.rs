//! A program in C writes a pack body, and our reader reads it.

use std::path::{Path, PathBuf};
use std::process::Command;
use tensilo_testkit::oracle;

/// The static library that was built beside this test.
fn library() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let deps = exe.parent()?;
    [deps, deps.parent()?].iter().map(|d| d.join("libtensilo_capi.a")).find(|p| p.is_file())
}

fn build(program: &Path) -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(library) = library() else { return false };
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg(here.join("tests/it/writer.c"))
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(program)
        .output();
    match built {
        Ok(out) => {
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            true
        }
        Err(_) => false,
    }
}

#[test]
fn a_program_in_c_writes_a_body_that_reads_back() {
    let folder = oracle::temp_dir();
    let program = folder.path().join("writer");
    if !build(&program) {
        return oracle::skip("a C compiler and the static library", 1);
    }
    let path = folder.path().join("body.h5");
    let out = Command::new(&program).arg(&path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let offsets: Vec<u64> =
        String::from_utf8(out.stdout).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    let file = tensilo_hdf5::read::File::open(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let parts = [
        ("000/payload_u32", vec![1_u32, 2, 0xffff_ffff]),
        ("000/compact_headers_u32", vec![0, 3]),
        ("001/payload_u32", vec![7]),
        ("001/compact_headers_u32", vec![4, 5, 6, 7]),
    ];
    assert_eq!(offsets.len(), parts.len());
    for ((name, words), offset) in parts.into_iter().zip(offsets) {
        let dataset = file.dataset(format!("/quantem_gpu/shards/{name}")).unwrap();
        assert_eq!(dataset.read::<u32>().unwrap(), words, "{name}");
        let stored: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert!(offset >= 65_536);
        assert_eq!(bytes[offset as usize..][..stored.len()], stored, "{name}");
    }
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "aborted and refused writers leave nothing: {names:?}");
}
