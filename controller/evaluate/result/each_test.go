package result_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pitchpipe/controller/evaluate/result"
)

func TestEachPartIsDoneOnceAndReported(t *testing.T) {
	t.Parallel()
	done := make([]int, 20)
	var reported []int
	err := result.Each(t.Context(), len(done), func(d, total int, what string) {
		if total != len(done) || what == "" {
			t.Errorf("reported %q, %d of %d", what, d, total)
		}
		reported = append(reported, d)
	}, func(_ context.Context, i int) (string, error) {
		done[i]++
		return fmt.Sprint(i), nil
	})
	if err != nil || slices.ContainsFunc(done, func(n int) bool { return n != 1 }) || !slices.IsSorted(reported) || len(reported) != len(done) {
		t.Errorf("%v: %v, reported %v", err, done, reported)
	}
}

var errBad = errors.New("bad")

func TestAPartThatFailsEndsTheRest(t *testing.T) {
	t.Parallel()
	err := result.Each(t.Context(), 1000, result.Quiet, func(ctx context.Context, i int) (string, error) {
		if i == 0 {
			return "", errBad
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
	if !errors.Is(err, errBad) {
		t.Errorf("%v, want %v", err, errBad)
	}
}
