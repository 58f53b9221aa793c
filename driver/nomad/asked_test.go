package nomad_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
)

// Many programs save and end with 0 when they are asked to end. Their work is not done then.
func TestWorkThatEndsAsItIsToldToGoesOn(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"2.3 a job that ends with 0 as its allocation is stopped goes on in the next": toldToEnd,
	})
}

func toldToEnd(t *testing.T, s *story) {
	script := fmt.Sprintf("echo x >>%[1]s/begun; [ -e %[1]s/saved ] && exit 0; trap 'touch %[1]s/saved; exit 0' INT; touch %[1]s/ready; while :; do sleep 0.05; done", s.dir)
	spec := s.job(t, mover(1))
	spec.Source = []byte(strings.Replace(strings.Replace(string(spec.Source), `command = "`, "command = \"/bin/sh\"\n        # ", 1),
		"args    = [", fmt.Sprintf("args    = [\"-c\", %q]\n        # ", script), 1))
	id, err := nomad.Submission{Client: s.clean}.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	begun := func() int {
		data, err := os.ReadFile(filepath.Join(s.dir, "begun"))
		if err != nil {
			return 0
		}
		return strings.Count(string(data), "x")
	}
	eventually(t, "it works", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "ready"))
		return err == nil
	})
	if _, err := s.clean.Allocations().Stop(&api.Allocation{ID: s.allocs(t, id)[0].ID}, s.read()); err != nil {
		t.Fatal(err)
	}
	got := s.wait(t, id, "it has ended", ended)
	if n := begun(); n != 2 || got.State != driver.Succeeded {
		t.Errorf("begun %d times, %s (%s); want that it goes on and is done then", n, got.State, got.Detail)
	}
}
