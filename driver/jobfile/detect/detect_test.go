package detect_test

import (
	"strings"
	"testing"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

const nomad = "job \"j\" {\n type = \"batch\"\n group \"g\" {\n task \"t\" {\n driver = \"exec\"\n config { command = \"/bin/true\" }\n }\n }\n}\n"

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, src string
		vars            map[string]string
		want            jobfile.Format
		err             string
	}{
		{name: "a Nomad job file", file: "a.nomad", src: nomad, want: jobfile.NomadHCL},
		{name: "a Nomad job file by its long name", file: "a.nomad.hcl", src: nomad, want: jobfile.NomadHCL},
		{name: "HCL", file: "a.hcl", src: nomad, want: jobfile.NomadHCL},
		{name: "a script by its first line", file: "a", src: "#!/bin/sh\n", want: jobfile.Sbatch},
		{name: "a script without an interpreter", file: "a.sh", src: "\n#TUNE mode=apply\n", err: "a.sh:1:1: the script does not start with #!"},
		{name: "anything else", file: "a.txt", src: "hello\n", err: "a.txt:1:1: a file of no known format; want a Nomad job file (its name ends in .nomad or .hcl) or a batch script"},
		{name: "variables of a script", file: "a", src: "#!/bin/sh\n", vars: map[string]string{"x": "1"}, err: "a:1:1: a value for the variable \"x\"; a batch script has no variables"},
		{name: "variables of a Nomad job file", file: "a.hcl", src: nomad, vars: map[string]string{"x": "1"}, err: "a.hcl:1:1: a value for the unknown variable \"x\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job, err := detect.Parse(tt.file, []byte(tt.src), tt.vars)
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if job.Format != tt.want {
				t.Errorf("format %s, want %s", job.Format, tt.want)
			}
		})
	}
}

func TestEachDriverReadsWhatItsSchedulerRuns(t *testing.T) {
	t.Parallel()
	image := strings.NewReplacer(`"exec"`, `"docker"`, `command = "/bin/true"`, `image = "x"`).Replace(nomad)
	registered := `{"ID":"j","Type":"batch","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Config":{"command":"x"}}]}]}`
	for _, tt := range []struct {
		driver, file, src string
		want              jobfile.Format // empty: refused
	}{
		{"nomad", "a.nomad.hcl", image, jobfile.NomadHCL},
		{"local", "a.nomad.hcl", image, ""},
		{"nomad", "j.nomad.json", registered, jobfile.NomadJSON},
		{"local", "j.nomad.json", registered, ""},
		{"slurm", "j.nomad.json", registered, ""},
		{"nomad", "a.sh", "#!/bin/sh\n", jobfile.Sbatch},
	} {
		job, err := detect.For(tt.driver)(tt.file, []byte(tt.src), nil)
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("%s took %s as %s", tt.driver, tt.file, job.Format)
		case tt.want != "" && err != nil:
			t.Errorf("%s: %v", tt.driver, err)
		case tt.want != "" && job.Format != tt.want:
			t.Errorf("%s read %s as %s, want %s", tt.driver, tt.file, job.Format, tt.want)
		}
	}
}
