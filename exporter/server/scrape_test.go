package server_test

import (
	"strings"
	"testing"

	"pitchpipe/exporter/server"
)

const connections = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2664 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0
   1: 0100007F:2664 0100007F:A001 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:A001 0100007F:2664 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0000000000000000 20 4 30 10 -1
`

func TestAConnectionIsFoundByBothItsEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, list, local, remote string
		uid                       uint32
		ok                        bool
	}{
		{"the caller's end", connections, "0100007F:A001", "0100007F:2664", 1000, true},
		{"the other end is the exporter's own", connections, "0100007F:2664", "0100007F:A001", 0, true},
		{"a listener is no connection", connections, "0100007F:2664", "0100007F:A002", 0, false},
		{"another port", connections, "0100007F:A002", "0100007F:2664", 0, false},
		{"no address of this kind", connections, "", "", 0, false},
		{"a line that ends early", "2: 0100007F:A001 0100007F:2664 01\n", "0100007F:A001", "0100007F:2664", 0, false},
		{"no number of a user", strings.Replace(connections, " 1000 ", " -100 ", 1), "0100007F:A001", "0100007F:2664", 0, false},
	} {
		if uid, ok := server.Listed(tc.list, tc.local, tc.remote); ok != tc.ok || ok && uid != tc.uid {
			t.Errorf("%s: user %d, %v; want %d, %v", tc.name, uid, ok, tc.uid, tc.ok)
		}
	}
}

func FuzzListed(f *testing.F) {
	f.Add(connections, "0100007F:A001", "0100007F:2664")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, list, local, remote string) {
		if _, ok := server.Listed(list, local, remote); ok && (!strings.Contains(list, local) || !strings.Contains(list, remote)) {
			t.Errorf("found %q and %q in %q", local, remote, list)
		}
	})
}
