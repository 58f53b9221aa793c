package nomadagent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"pitchpipe/test/nomadserver"
)

// inProcess is the server of this process.
type inProcess struct {
	*nomadserver.Server
	said *buffer
}

func launchInProcess(ctx context.Context, o Options) (backend, error) {
	said := &buffer{}
	memory := o.MemoryMB
	if memory == 0 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return nil, fmt.Errorf("memory of the machine: %w", err)
		}
		memory = int(info.Totalram * uint64(info.Unit) >> 20)
	}
	// The server lives until Stop, not until the end of the bring-up.
	s, err := nomadserver.Start(context.WithoutCancel(ctx), nomadserver.Options{
		ACL: o.ACL, Cores: cmp.Or(o.Cores, runtime.NumCPU()), MemoryMB: memory, Oversubscribe: o.Oversubscribe,
		Logger: slog.New(slog.NewTextHandler(said, nil)),
	})
	if err != nil {
		return nil, err
	}
	return &inProcess{Server: s, said: said}, nil
}

func (s *inProcess) addr() string { return s.Addr() }

func (s *inProcess) kill(context.Context) error {
	s.Down()
	return nil
}

func (s *inProcess) start(ctx context.Context) error { return s.Up(ctx) }

func (s *inProcess) stop(context.Context) error { return s.Close() }

func (s *inProcess) logs() string { return s.said.String() }

func (s *inProcess) gone() error { return nil }

// buffer is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
