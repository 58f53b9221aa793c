package driver_test

import (
	"errors"
	"testing"

	"pitchpipe/driver"
)

func TestAChangeGivesAJobNothingThatAShellOrALinkerRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change driver.Change
		bad    bool
	}{
		{"a number and words", driver.Change{Env: map[string]string{"BATCH": "1e-05", "OPT": "a,b%{x}=/:@+"}}, false},
		{"a subscript that a shell evaluates", driver.Change{Env: map[string]string{"OMP_NUM_THREADS": "a[$(id >pwned; echo 0)]"}}, true},
		{"a variable of Nomad's in a flag", driver.Change{Args: map[string]string{"--lr": "${NOMAD_TOKEN}"}}, true},
		{"a line's end in a live setting", driver.Change{Live: map[string]string{"lr": "1\n2"}}, true},
		{"two words", driver.Change{Env: map[string]string{"OPT": "a b"}}, true},
		{"a letter outside of ASCII", driver.Change{Env: map[string]string{"OPT": "é"}}, true},
		{"a preloaded library", driver.Change{Env: map[string]string{"LD_PRELOAD": "x.so"}}, true},
		{"options of Perl", driver.Change{Env: map[string]string{"PERL5OPT": "-Mx"}}, true},
		{"parameters of Open MPI", driver.Change{Env: map[string]string{"OMPI_MCA_plm_rsh_agent": "x"}}, true},
		{"a name that is longer than one that is denied", driver.Change{Env: map[string]string{"HOMES": "1"}}, false},
		{"no name", driver.Change{Env: map[string]string{"": "1"}}, true},
		{"fewer than no cores", driver.Change{Cores: -1}, true},
	} {
		if err := tt.change.Validate(); (err != nil) != tt.bad || err != nil && !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
