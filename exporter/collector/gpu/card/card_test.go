package card_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pitchpipe/exporter/collector/gpu/card"
)

func TestALineThatNoHelperWritesIsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, want string }{
		{"no JSON", `GPU 0`, "invalid character"},
		{"no time", `{"devices":[]}`, "it has no time"},
		{"no name", `{"at":"2026-01-01T00:00:00Z","devices":[{"index":3}]}`, `GPU 3 has no unique UUID: ""`},
		{"a name twice", `{"at":"2026-01-01T00:00:00Z","devices":[{"uuid":"a"},{"uuid":"a"}]}`, `no unique UUID: "a"`},
		{"less than nothing", `{"at":"2026-01-01T00:00:00Z","devices":[{"uuid":"a","watts":-1}]}`, "watts is -1"},
		{"more than all", `{"at":"2026-01-01T00:00:00Z","devices":[{"uuid":"a","busy":35}]}`, "busy is 35, more than all of the time"},
		{"negative memory", `{"at":"2026-01-01T00:00:00Z","devices":[{"uuid":"a","memory_used_bytes":-1}]}`, "memory is negative"},
	} {
		if _, err := card.Decode([]byte(tc.line)); !errors.Is(err, card.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", tc.name, err, tc.want)
		}
	}
}

func TestNoProcessesAndUnknownProcessesAreTwoThings(t *testing.T) {
	t.Parallel()
	r, err := card.Decode([]byte(`{"at":"2026-01-01T00:00:00Z","devices":[{"uuid":"a","processes":[]},{"uuid":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Devices[0].Processes == nil || r.Devices[1].Processes != nil {
		t.Errorf("%+v", r.Devices)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-01T00:00:00Z","driver":"1","devices":[{"uuid":"a","index":0,"joules":1.5,"watts":2,"busy":0.5,"processes":[{"pid":1}],"instances":[{"uuid":"m","multiprocessors":4}],"missing":{"x":"y"}}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := card.Decode(line)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := card.Decode(again); err != nil {
			t.Errorf("what was read is not read again: %v: %s", err, again)
		}
	})
}
