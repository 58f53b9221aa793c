package door_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"pitchpipe/driver/door"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open listens with so much room, for callers who are known or not.
func open(t *testing.T, room door.Room, known bool) (l *door.Listener, turned func() []uint32) {
	t.Helper()
	var lc net.ListenConfig
	inner, err := lc.Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	var all []uint32
	l = &door.Listener{Listener: inner, Room: room, Known: func(uint32) bool { return known }, Full: func(uid uint32) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, uid)
	}}
	return l, func() []uint32 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// dial connects to it.
func dial(t *testing.T, l *door.Listener) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func accept(t *testing.T, l *door.Listener) net.Conn {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestTheKernelSaysWhoComes(t *testing.T) {
	t.Parallel()
	l, _ := open(t, door.Room{All: 1}, true)
	dial(t, l)
	if uid, err := door.UID(accept(t, l)); err != nil || uid != uint32(os.Geteuid()) {
		t.Errorf("uid %d (%v), want %d", uid, err, os.Geteuid())
	}
}

func TestOneThatThereIsNoRoomForIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		room  door.Room
		known bool
	}{
		{"where all places are taken", door.Room{All: 1, Strangers: 9, Each: 9}, true},
		{"where those of strangers are", door.Room{All: 9, Strangers: 1, Each: 9}, false},
		{"where its own are", door.Room{All: 9, Strangers: 9, Each: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, turned := open(t, c.room, c.known)
			dial(t, l)
			first := accept(t, l)
			second := dial(t, l)
			third := make(chan net.Conn, 1)
			go func() {
				defer close(third)
				if conn, err := l.Accept(); err == nil { // it closes the second, and waits for another
					third <- conn
				}
			}()
			if n, err := second.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("the second reads %d (%v), want its end", n, err)
			}
			if err := errors.Join(first.Close(), first.Close()); err == nil {
				t.Error("a connection was closed twice without an error")
			}
			dial(t, l)
			conn, ok := <-third
			if !ok {
				t.Fatal("there is no room after the first left")
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if got := turned(); !slices.Equal(got, []uint32{uint32(os.Geteuid())}) {
				t.Errorf("told of %v, want of one", got)
			}
		})
	}
}

func TestNobodyIsKnownElsewhere(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	if uid, err := door.UID(a); !errors.Is(err, door.ErrUnknown) || uid != door.Nobody {
		t.Errorf("uid %d (%v), want %v", uid, err, door.ErrUnknown)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	l, _ := open(t, door.Room{All: 1}, true)
	dial(t, l)
	conn, err := l.Listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if uid, err := door.UID(conn); err == nil || uid != door.Nobody {
		t.Errorf("of one that is closed: uid %d, want an error", uid)
	}
}

func TestPlacesAreNeverMoreThanThereAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		room := door.Room{All: rapid.IntRange(0, 6).Draw(t, "all"), Strangers: rapid.IntRange(0, 4).Draw(t, "strangers"), Each: rapid.IntRange(0, 3).Draw(t, "each")}
		places := door.NewPlaces(room)
		in := map[uint32]int{}
		all, strangers := 0, 0
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			uid := rapid.Uint32Range(0, 3).Draw(t, "uid")
			stranger := uid > 0 // uid 0 is known
			if rapid.Bool().Draw(t, "comes") {
				fits := all < room.All && (!stranger || strangers < room.Strangers && in[uid] < room.Each)
				if got := places.Enter(uid, stranger); got != fits {
					t.Fatalf("uid %d enters: %v, want %v, beside %v", uid, got, fits, in)
				}
				if !fits {
					continue
				}
				in[uid]++
				all++
				if stranger {
					strangers++
				}
			} else if in[uid] > 0 {
				places.Leave(uid, stranger)
				in[uid]--
				all--
				if stranger {
					strangers--
				}
			}
		}
	})
}
