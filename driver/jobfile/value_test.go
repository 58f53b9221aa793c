package jobfile_test

import (
	"testing"

	"pitchpipe/driver/jobfile"
)

func TestAChangeGivesAJobNothingThatAShellOrALinkerRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		env, other map[string]string
		bad        bool
	}{
		{"a number and words", map[string]string{"BATCH": "1e-05", "OPT": "a,b%{x}=/:@+"}, nil, false},
		{"a subscript that a shell evaluates", map[string]string{"OMP_NUM_THREADS": "a[$(id >pwned; echo 0)]"}, nil, true},
		{"a variable of Nomad's in a flag", nil, map[string]string{"--lr": "${NOMAD_TOKEN}"}, true},
		{"a line's end in a live setting", nil, map[string]string{"lr": "1\n2"}, true},
		{"two words", map[string]string{"OPT": "a b"}, nil, true},
		{"a letter outside of ASCII", map[string]string{"OPT": "é"}, nil, true},
		{"a preloaded library", map[string]string{"LD_PRELOAD": "x.so"}, nil, true},
		{"options of Perl", map[string]string{"PERL5OPT": "-Mx"}, nil, true},
		{"parameters of Open MPI", map[string]string{"OMPI_MCA_plm_rsh_agent": "x"}, nil, true},
		{"a name that is longer than one that is denied", map[string]string{"HOMES": "1"}, nil, false},
		{"no name", map[string]string{"": "1"}, nil, true},
	} {
		if err := jobfile.CheckValues(tt.env, tt.other); (err != nil) != tt.bad {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
