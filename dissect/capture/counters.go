package capture

// Counters count what became of the packets of an interface.
type Counters struct {
	Received      uint64 // by us, from the kernel
	KernelDropped uint64 // by the kernel, which had no room
	OwnDropped    uint64 // by us: the queue had no room
}
