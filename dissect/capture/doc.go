// Package capture reads packets out of capture files: pcap and pcapng, plain or
// compressed with gzip or zstd, from a path or from any io.Reader.
//
// What a file is, its first bytes say, never its name. A file is read once, from
// front to back, through one reused buffer, so that pipes work as files do, a
// packet is delivered as soon as it is there, and memory stays the same however
// long the file is.
//
// A damaged file gives every packet that is whole, then an error that says where
// the damage is: *wire.Error of kind Truncated for a file that ends in the middle of
// something, of kind Malformed for one that contradicts itself, and the cause
// itself where reading failed. Only a file that ends where a packet ends gives
// io.EOF.
package capture
