//! libFuzzer's entry to the target `btree_v2`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::btree_v2(data));
