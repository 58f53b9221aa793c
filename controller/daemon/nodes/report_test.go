package nodes

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
)

func TestAReportGoesToTheExporterOfItsNode(t *testing.T) {
	t.Parallel()
	n1, n2 := &fake{}, &fake{}
	e := cluster(nil, map[string]*fake{"n1": n1, "n2": n2})
	defer e.Close()
	if err := e.Report(t.Context(), "n2", "nomad/a.train", 1, api.Report{Epoch: 3}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"nomad/a.train.1 epoch 3"}, n2.heard); diff != "" || len(n1.heard) > 0 {
		t.Errorf("n1 heard %v, n2 (-want +got):\n%s", n1.heard, diff)
	}
	for _, want := range []error{api.ErrNotFound, api.ErrDenied, api.ErrUnavailable} {
		n2.set(want, false)
		if err := e.Report(t.Context(), "n2", "nomad/a.train", 1, api.Report{Epoch: 4}); !errors.Is(err, want) || !strings.Contains(err.Error(), "n2") {
			t.Errorf("got %v, want %v and the node", err, want)
		}
	}
	if err := e.Report(t.Context(), "", "nomad/a.train", 1, api.Report{Epoch: 4}); !errors.Is(err, ErrNode) {
		t.Errorf("no node: %v, want %v", err, ErrNode)
	}
}
