//! libFuzzer's entry to the target `chunk_record`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::chunk_record(data));
