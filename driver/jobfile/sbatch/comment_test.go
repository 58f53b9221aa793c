package sbatch_test

import (
	"testing"

	"pitchpipe/driver/jobfile/sbatch"
)

func TestAStanzaMayComeByTheComment(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, script, comment, want string }{
		{
			"each word #TUNE begins a line behind the first", "#!/bin/sh\ntrue\n", "#TUNE mode=apply #TUNE knob cores values=1,2",
			"#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores values=1,2\ntrue\n",
		},
		{"what others wrote before it stays out", "#!/bin/sh\n", "for the paper #TUNE mode=observe", "#!/bin/sh\n#TUNE mode=observe\n"},
		{"a script's own stanza counts alone", "#!/bin/sh\n#TUNE mode=off\n", "#TUNE mode=apply", "#!/bin/sh\n#TUNE mode=off\n"},
		{"a comment without one changes nothing", "#!/bin/sh\ntrue\n", "nothing #TUNEd here, see x#TUNE y", "#!/bin/sh\ntrue\n"},
		{"no comment changes nothing", "#!/bin/sh\ntrue", "", "#!/bin/sh\ntrue"},
		{"line breaks of a comment end no line of the script", "#!/bin/sh\n", "#TUNE mode=apply\nrm -rf", "#!/bin/sh\n#TUNE mode=apply rm -rf\n"},
		{"what only looks like a stanza is kept to be warned of", "#!/bin/sh\n", "x # TUNE mode=apply #Tune knob b values=1", "#!/bin/sh\n# TUNE mode=apply\n#Tune knob b values=1\n"},
		{"a remark about tuning changes nothing", "#!/bin/sh\n", "# tune the model", "#!/bin/sh\n"},
		{"two words #TUNE in a row are two lines", "#!/bin/sh\n", "#TUNE #TUNE mode=apply", "#!/bin/sh\n#TUNE\n#TUNE mode=apply\n"},
		{"a script of one line without an end gets one", "#!/bin/sh", "#TUNE mode=apply", "#!/bin/sh\n#TUNE mode=apply\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := string(sbatch.WithComment([]byte(tc.script), tc.comment)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzTheCommentNeverTouchesTheCommandsOfAScript(f *testing.F) {
	f.Add("#!/bin/sh\ntrue\n", "#TUNE mode=apply #TUNE knob cores values=1")
	f.Fuzz(func(t *testing.T, script, comment string) {
		before, beforeErr := sbatch.Parse("a", []byte(script))
		after, afterErr := sbatch.Parse("a", sbatch.WithComment([]byte(script), comment))
		if beforeErr != nil || afterErr != nil {
			return
		}
		if before.Command != after.Command || before.Cores != after.Cores || len(before.Env) != len(after.Env) {
			t.Errorf("%q with comment %q: %+v became %+v", script, comment, before, after)
		}
	})
}
