package peercred_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

// gate is a listener whose connections are served until the test ends.
type gate struct {
	*peercred.Listener
	path string

	mu     sync.Mutex
	turned []peercred.Caller
}

func open(t *testing.T, l *peercred.Listener) *gate {
	t.Helper()
	g := &gate{Listener: l, path: filepath.Join(peercredtest.Dir(t), "s")}
	var err error
	if l.Listener, err = peercred.Listen(t.Context(), g.path); err != nil {
		t.Fatal(err)
	}
	l.Full = func(c peercred.Caller) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.turned = append(g.turned, c)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = conn.Write([]byte("."))
				_, _ = conn.Read(make([]byte, 1)) // until the caller leaves
				_, _ = conn.Close(), conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return g
}

// comes reports whether a caller is let in, who then stays.
func (g *gate) comes(t *testing.T) (conn net.Conn, in bool) {
	t.Helper()
	conn, err := peercredtest.Dial("unix", g.path)
	if err != nil {
		t.Error(err)
		return nil, false
	}
	t.Cleanup(func() { _ = conn.Close() })
	n, err := conn.Read(make([]byte, 1))
	if n == 0 && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("neither in nor closed: %v", err)
	}
	return conn, n == 1
}

func (g *gate) count(t *testing.T, uid uint32, tries int) (in int) {
	t.Helper()
	peercredtest.As(t, uid, func() {
		for range tries {
			if _, ok := g.comes(t); ok {
				in++
			}
		}
	})
	return in
}

const alice, bob, carol, operator = 64001, 64002, 64003, 64004

func TestEachCallerHasHisShareAndNoMore(t *testing.T) {
	t.Parallel()
	type try struct {
		uid        uint32
		tries, get int
	}
	for _, tc := range []struct {
		name   string
		room   peercred.Room
		subuid string
		tries  []try
	}{
		{"a user has his own", peercred.Room{All: 9, Strangers: 9, Each: 2}, "", []try{{alice, 5, 2}, {bob, 5, 2}}},
		{"all strangers together have theirs", peercred.Room{All: 9, Strangers: 3, Each: 2}, "", []try{{alice, 5, 2}, {bob, 5, 1}, {operator, 9, 6}}},
		{"who owns a job gets in beside any number of others", peercred.Room{All: 9, Strangers: 4, Each: 4, Own: 2}, "", []try{{alice, 9, 4}, {bob, 9, 0}, {carol, 9, 2}, {operator, 9, 5}}},
		{"an owner of a job has no end of places himself", peercred.Room{All: 9, Strangers: 4, Each: 3, Own: 2}, "", []try{{carol, 9, 5}}},
		{
			"subordinate uids are their owner's",
			peercred.Room{All: 99, Strangers: 90, Each: 3},
			"64001:1000000:65536\n64002:1065536:65536\n",
			[]try{{1000000, 5, 3}, {1000001, 5, 0}, {1065535, 5, 0}, {alice, 5, 0}, {1065536, 5, 3}, {bob, 5, 0}, {1131072, 5, 3}},
		},
		{
			"what an owner of a job has, his subordinate uids have once",
			peercred.Room{All: 99, Own: 2},
			"64003:1000000:65536\n",
			[]try{{1000000, 1, 1}, {1000001, 5, 1}, {carol, 5, 0}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := &peercred.Listener{
				Room:  tc.room,
				Known: func(uid uint32) bool { return uid == operator },
				Owns:  func(uid uint32) bool { return uid == carol },
			}
			l.Subs.Path = filepath.Join(t.TempDir(), "subuid")
			if err := os.WriteFile(l.Subs.Path, []byte(tc.subuid), 0o600); err != nil {
				t.Fatal(err)
			}
			g := open(t, l)
			refused := 0
			for _, try := range tc.tries {
				if got := g.count(t, try.uid, try.tries); got != try.get {
					t.Errorf("user %d got %d of %d, want %d", try.uid, got, try.tries, try.get)
				}
				refused += try.tries - try.get
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if len(g.turned) != refused {
				t.Errorf("told of %d, want %d", len(g.turned), refused)
			}
			for _, c := range g.turned {
				if c.PID != os.Getpid() || c.Start != 0 {
					t.Fatalf("%+v was looked up further although there was no room", c)
				}
			}
		})
	}
}

func TestOneThatLeavesMakesRoom(t *testing.T) {
	t.Parallel()
	g := open(t, &peercred.Listener{Room: peercred.Room{All: 1, Strangers: 1, Each: 1}})
	first, in := g.comes(t)
	if _, also := g.comes(t); !in || also {
		t.Fatalf("the first is in: %v, the second: %v", in, also)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for { // the other end hears of it a moment later
		if _, in := g.comes(t); in {
			return
		}
	}
}

func TestPlacesAreNeverMoreThanThereAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(0, 4)
		room := peercred.Room{All: rapid.IntRange(0, 6).Draw(t, "all"), Strangers: small.Draw(t, "strangers"), Each: small.Draw(t, "each"), Own: small.Draw(t, "own")}
		l := &peercred.Listener{Room: room}
		in := map[uint32][]func(){}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			uid := rapid.Uint32Range(0, 3).Draw(t, "uid") // 0 is known, 3 owns a job
			if n := len(in[uid]); n > 0 && rapid.Bool().Draw(t, "leaves") {
				in[uid][n-1]()
				in[uid] = in[uid][:n-1]
				continue
			}
			leave := l.Enter(uid, uid == 0, uid == 3)
			if leave != nil {
				in[uid] = append(in[uid], leave)
			} else if uid == 3 && len(in[3]) < room.Own {
				t.Fatalf("the owner of a job has %d of %d places of his own and is kept out", len(in[3]), room.Own)
			}
			a, b, owner := len(in[1]), len(in[2]), len(in[3])
			if a > room.Each || b > room.Each || owner > room.Each+room.Own || a+b > room.Strangers || len(in[0])+a+b+max(owner-room.Own, 0) > room.All {
				t.Fatalf("%d, %d, %d and %d connections, of %+v", len(in[0]), a, b, owner, room)
			}
		}
		for _, all := range in {
			for _, leave := range all {
				leave()
			}
		}
		if leave := l.Enter(0, true, false); (leave != nil) != (room.All > 0) {
			t.Fatal("places of connections that left stay taken")
		}
	})
}

func TestWhoseAUidIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "subuid")
	s := &peercred.Subordinates{Path: path}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Owner(1000000); got != 1000000 {
		t.Errorf("without a file it is %d's", got)
	}
	for _, tc := range []struct {
		name, text string
		want       map[uint32]uint32
	}{
		{"a range", "64001:100:10\n", map[uint32]uint32{99: 99, 100: 64001, 109: 64001, 110: 110}},
		{"the file has changed, and names its owner", "nobody:200:2\n", map[uint32]uint32{100: 100, 201: uint32(uid)}},
		{"ranges of root and of a user that there is not", "root:200:2\n0:200:2\nlxd of old:200:2\n", map[uint32]uint32{200: 200, 201: 201}},
		{"a range that covers the users of the machine", "64001:1000:1000000000\n64002:1000:16777217\n", map[uint32]uint32{1000: 1000, 1001: 1001}},
		{"the largest range", "64001:1000:16777216\n", map[uint32]uint32{1000: 64001, 16778215: 64001, 16778216: 16778216}},
		{"lines that are none", "a\nb:x:1\nc:1:x\n64001:5:0\n64001:0:9\n64002:7:1", map[uint32]uint32{0: 0, 1: 1, 5: 5, 7: 64002}},
		{"to the last of all", "64001:4294967290:9\n", map[uint32]uint32{4294967294: 64001, peercred.Nobody: peercred.Nobody, 5: 5}},
	} {
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for uid, want := range tc.want {
			if got := s.Owner(uid); got != want {
				t.Errorf("%s: %d is %d's, want %d's", tc.name, uid, got, want)
			}
		}
	}
}
