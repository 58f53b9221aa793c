package driver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
)

func TestFlagsAreSetWhereTheyStand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		argv []string
		args map[string]string
		want []string
	}{
		"a flag and its value":             {[]string{"--k", "1", "x"}, map[string]string{"--k": "2"}, []string{"--k", "2", "x"}},
		"a flag with its value":            {[]string{"--k=1"}, map[string]string{"--k": "2"}, []string{"--k=2"}},
		"each place of it":                 {[]string{"--k", "1", "--k=3"}, map[string]string{"--k": "2"}, []string{"--k", "2", "--k=2"}},
		"one that is not there":            {[]string{"x"}, map[string]string{"--b": "2", "--a": "1"}, []string{"x", "--a", "1", "--b", "2"}},
		"one at the end without its value": {[]string{"--k"}, map[string]string{"--k": "2"}, []string{"--k", "2"}},
		"what stands behind two dashes":    {[]string{"run", "--", "--k", "1"}, map[string]string{"--k": "2"}, []string{"run", "--k", "2", "--", "--k", "1"}},
	} {
		if diff := cmp.Diff(tt.want, driver.WithFlags(tt.argv, tt.args)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
