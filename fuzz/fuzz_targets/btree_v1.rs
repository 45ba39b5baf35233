//! libFuzzer's entry to the target `btree_v1`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::btree_v1(data));
