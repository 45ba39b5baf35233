//! libFuzzer's entry to the target `chunk_node`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::chunk_node(data));
