package collector

import (
	"errors"
	"fmt"
	"time"
)

// ErrSilent means that a source does not answer: a read of it hangs in the kernel.
var ErrSilent = errors.New("does not answer")

// Patience is how long a source may take to say what it is.
const Patience = 5 * time.Second

// Ask asks something that may hang, in a goroutine of its own, and goes on without it
// when it has not answered within Patience. done is closed when it answers; until then
// nothing else may be asked of it, and what it answers too late nobody sees.
func Ask[T any](name string, call func() T) (answer T, done <-chan struct{}, err error) {
	back, box := make(chan struct{}), new(T)
	go func() {
		defer close(back)
		*box = call()
	}()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-back:
		return *box, back, nil
	case <-timer.C:
		var none T
		// Without the time, which the log has: this becomes a label, and a label with a time
		// in it is a series of its own.
		return none, back, fmt.Errorf("%s: %w", name, ErrSilent)
	}
}
