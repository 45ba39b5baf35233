//! Sampler and loader: batches of records, endless or by epoch, in order, resumable on any number of ranks.
