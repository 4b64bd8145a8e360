//! Writes headers for tests, right or wrong ones.

/// Builds the bytes of a header.
#[derive(Clone, Default)]
pub struct HeaderBuilder {
    entries: Vec<u8>,
    pub count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
}

/// Appends a string as GGUF writes it: its length, then its bytes.
pub fn append_string(into: &mut Vec<u8>, text: &str) {
    into.extend((text.len() as u64).to_le_bytes());
    into.extend(text.as_bytes());
}

impl HeaderBuilder {
    pub fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        append_string(&mut self.entries, key);
        self.entries.extend(kind.to_le_bytes());
        self.entries.extend(value);
        self.count += 1;
        self
    }

    pub fn text(self, key: &str, value: &str) -> Self {
        let mut bytes = Vec::new();
        append_string(&mut bytes, value);
        self.raw(key, 8, &bytes)
    }

    pub fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub fn list(self, key: &str, kind: u32, count: u64, elements: &[u8]) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(count.to_le_bytes());
        bytes.extend(elements);
        self.raw(key, 9, &bytes)
    }

    pub fn tensor(mut self, dimensions: &[u64], kind: u32) -> Self {
        append_string(&mut self.tensors, "blk.0.weight");
        self.tensors.extend(u32::try_from(dimensions.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.tensors.extend(dimensions.iter().flat_map(|size| size.to_le_bytes()));
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend(0_u64.to_le_bytes());
        self.tensor_count += 1;
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(3, self.tensor_count, self.count)
    }

    /// With a version and counts that need not be true.
    pub fn bytes_with(&self, version: u32, tensors: u64, entries: u64) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes.extend(&self.entries);
        bytes.extend(&self.tensors);
        bytes
    }
}
