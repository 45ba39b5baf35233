//! libFuzzer's entry to the target `pack_blocks`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::pack_blocks(data));
