package result

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Progress receives how many of how many parts are done, and which one was done last.
type Progress func(done, total int, what string)

// Quiet ignores progress.
func Quiet(int, int, string) {}

// Each runs n independent parts on all processors and reports each when it is done. It
// returns the first error, and does not begin what has not begun by then.
func Each(ctx context.Context, n int, report Progress, do func(ctx context.Context, i int) (what string, err error)) error {
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
			report(done, n, what)
			return err
		})
	}
	return group.Wait()
}
