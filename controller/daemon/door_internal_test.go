package daemon

import (
	"log/slog"
	"os"
	"testing"

	"pitchpipe/driver/door"
)

func TestNoUserKeepsTheOthersOut(t *testing.T) {
	t.Parallel()
	d := &Daemon{log: slog.New(slog.DiscardHandler)}
	l, ok := d.door(nil).(*door.Listener)
	if !ok || l.Each >= l.Strangers || l.Strangers >= l.All || l.Each < 1 {
		t.Fatalf("room %+v: want more for all users than for one, and for the operator always some", l)
	}
	for uid, known := range map[uint32]bool{0: true, uint32(os.Geteuid()): true, 12345: false} {
		if l.Known(uid) != known {
			t.Errorf("uid %d is known: %v, want %v", uid, l.Known(uid), known)
		}
	}
	l.Full(12345) // which is worth a line at most
}
