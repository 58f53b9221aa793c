package evaluate

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Each does n independent parts on all processors and tells of each when it is done. It
// returns the first error, and does not begin what has not begun by then.
func Each(ctx context.Context, n int, tell Progress, do func(ctx context.Context, i int) (what string, err error)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	done := 0
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			what, err := do(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			done++
			tell(done, n, what)
			return err
		})
	}
	return group.Wait()
}
