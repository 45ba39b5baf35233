//! The low-level writer: shards in order, offsets that hold, and nothing left behind when it does not finish.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use tensilo_core::ErrorKind;
use tensilo_core::io::SystemDisk;
use tensilo_pack::writer::PackWriter;
use tensilo_testkit::oracle;

#[test]
fn shards_are_appended_in_order_and_stand_where_the_writer_says() {
    let folder = oracle::temp_dir();
    let path = folder.path().join("body.h5");
    let mut w = PackWriter::create(SystemDisk::shared(), &path, 512).unwrap();
    let first = w.append_shard(0, &[1, 2, 3], &[4]).unwrap();
    for (ordinal, payload, header) in
        [(0, &[1][..], &[1][..]), (2, &[1], &[1]), (1, &[], &[1]), (1, &[1], &[])]
    {
        let e = w.append_shard(ordinal, payload, header).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    }
    let second = w.append_shard(1, &[0xdead_beef], &[5, 6]).unwrap();
    w.write_user_block(500, b"the last bit").unwrap();
    assert!(w.write_user_block(501, b"one too many").is_err());
    assert!(!path.exists(), "nothing stands there before it is closed");
    w.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(&bytes[500..512], b"the last bit");
    let file = tensilo_hdf5::read::File::open(&path).unwrap();
    for (name, extent, words) in [
        ("000/payload_u32", first.payload, vec![1_u32, 2, 3]),
        ("000/compact_headers_u32", first.header, vec![4]),
        ("001/payload_u32", second.payload, vec![0xdead_beef]),
        ("001/compact_headers_u32", second.header, vec![5, 6]),
    ] {
        let stored: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
        assert_eq!(bytes[extent.range().start as usize..extent.range().end as usize], stored, "{name}");
        let dataset = file.dataset(format!("/quantem_gpu/shards/{name}")).unwrap();
        assert_eq!(dataset.read::<u32>().unwrap(), words, "{name}");
    }
}

#[test]
fn what_does_not_finish_leaves_only_what_was_there() {
    let folder = oracle::temp_dir();
    let path = folder.path().join("body.h5");
    let begin = || PackWriter::create(SystemDisk::shared(), &path, 65_536);
    assert_eq!(
        PackWriter::create(SystemDisk::shared(), &path, 511).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let mut w = begin().unwrap();
    w.append_shard(0, &[1], &[2]).unwrap();
    w.abort();
    assert_eq!(begin().unwrap().close().unwrap_err().kind(), ErrorKind::InvalidArgument, "no shard");
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 0);
    let mut w = begin().unwrap();
    w.append_shard(0, &[1], &[2]).unwrap();
    std::fs::write(&path, b"somebody else's").unwrap();
    assert_eq!(begin().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(w.close().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody else's");
    assert_eq!(names(), 1);
}
