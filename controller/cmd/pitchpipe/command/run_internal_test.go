package command

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/config"
)

// As nomad job run does it: a variable of the environment counts where the file declares it
// and the command line says nothing.
func TestVariablesOfTheEnvironmentAreTakenForAJobFile(t *testing.T) {
	t.Parallel()
	const file = `variable "epochs" {
  type = number
}
variable "batch" {
  default = "32"
}
variable "dir" {}
job "train" {
  group "g" {}
}
`
	environ := []string{"NOMAD_VAR_epochs=5", "NOMAD_VAR_epochs=50", "NOMAD_VAR_batch=64", "NOMAD_VAR_dir=a=b", "NOMAD_VAR_other=1", "NOMAD_VAR_=2", "epochs=7"}
	for _, tt := range []struct {
		name, filename, source string
		given, want            map[string]string
	}{
		{"what is declared is taken", "train.nomad.hcl", file, nil, map[string]string{"epochs": "50", "batch": "64", "dir": "a=b"}},
		{"the command line comes first", "train.nomad.hcl", file, map[string]string{"batch": "", "x": "y"}, map[string]string{"epochs": "50", "batch": "", "dir": "a=b", "x": "y"}},
		{"a script of Slurm has none", "train.sh", "#!/bin/bash\n#SBATCH --ntasks=1\ntrue\n", nil, nil},
		{"a file that cannot be read is refused later", "train.nomad.hcl", "job {", nil, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := maps.Clone(tt.given)
			got := (&app{World: World{Environ: environ}}).variables(tt.filename, []byte(tt.source), tt.given)
			if diff := cmp.Diff(before, tt.given); diff != "" {
				t.Errorf("what was given is another: %s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAUsersCommandFindsTheController(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "own.sock")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		cfg        config.Config
	}{
		{"at the socket that was named, whatever is there", "/named.sock", config.Config{Socket: "/named.sock", Given: map[string]string{"socket": "--socket"}}},
		{"at that of the user's own controller", own, config.Config{Socket: own}},
	} {
		if got := controllerSocket(c.cfg); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
