package jobspecs_test

import (
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

func TestEveryJobFileCanBeFixed(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			before, policy := parse(t, file, nil)
			fix := jobfile.Fix{Cores: 2, Env: map[string]string{}}
			for _, k := range policy.Knobs {
				if k.Env != "" {
					fix.Env[k.Env] = "2"
				}
				if k.Env != "" && !tuning.IsSystem(k.Name) {
					fix.Knobs = append(fix.Knobs, k.Name)
				}
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out, err := detect.Fix(file, src, nil, fix)
			if err != nil {
				t.Fatal(err)
			}
			job, err := detect.Parse(file, out, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			fixed, err := stanza.Policy(job)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			maps.DeleteFunc(job.Env, func(name, _ string) bool { return fix.Env[name] == "" })
			if diff := cmp.Diff(fix.Env, job.Env); diff != "" || job.Cores != 2 || job.Command != before.Command || len(fixed.Knobs) != len(policy.Knobs)-len(fix.Knobs) {
				t.Errorf("%d cores, %d knobs, command %s, environment (-want +got):\n%s\n%s", job.Cores, len(fixed.Knobs), job.Command, diff, out)
			}
		})
	}
}
