package nodes

import (
	"context"
	"sync"
	"time"
)

// background runs calls that outlive their callers. Use newBackground.
type background struct {
	live  func(limit time.Duration) (context.Context, context.CancelFunc)
	end   context.CancelFunc
	calls sync.WaitGroup
}

func newBackground() *background {
	life, end := context.WithCancel(context.Background())
	return &background{end: end, live: func(limit time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(life, limit)
	}}
}

// run starts a call and reports whether it did: it does not after close.
func (b *background) run(limit time.Duration, call func(context.Context)) bool {
	ctx, cancel := b.live(limit)
	if ctx.Err() != nil {
		cancel()
		return false
	}
	b.calls.Go(func() { defer cancel(); call(ctx) })
	return true
}

func (b *background) close() {
	b.end()
	b.calls.Wait()
}
