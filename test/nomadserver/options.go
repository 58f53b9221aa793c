package nomadserver

import (
	"cmp"
	"log/slog"
)

// Options say what the cluster is like; zero values have a meaning.
type Options struct {
	// Cores are those of the node, 0 = 4; each counts as 2600 MHz.
	Cores int
	// MemoryMB is that of the node, 0 = 8192.
	MemoryMB int
	// ACL asks every request for a token.
	ACL bool
	// EventBuffer is how many batches of events are kept, 0 = 100.
	EventBuffer int
	// Oversubscribe lets memory_max count from the start.
	Oversubscribe bool
	// Dir holds the folders of allocations; "" = a new one, removed by Close.
	Dir string
	// Logger is told what goes wrong; nil = silent.
	Logger *slog.Logger
}

const mhzPerCore = 2600

func (o Options) withDefaults() Options {
	o.Cores = cmp.Or(o.Cores, 4)
	o.MemoryMB = cmp.Or(o.MemoryMB, 8192)
	o.EventBuffer = cmp.Or(o.EventBuffer, 100)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
