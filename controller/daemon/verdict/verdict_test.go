package verdict_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
)

func TestAJobFileIsJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		valid      bool
		faults     int
		line       int // of the first
		warnings   int
	}{
		{"without a stanza", "#!/bin/sh\n", true, 0, 0, 0},
		{"with one", "#!/bin/sh\n#TUNE mode=observe\n", true, 0, 0, 0},
		{"with faults, all at once", "#!/bin/sh\n#TUNE mood=observe\n#TUNE objective=speed\n", false, 2, 2, 0},
		{"with a blank before the word", "#!/bin/sh\n# TUNE mode=apply\n", true, 0, 0, 1},
		{"with lines in another case", "#!/bin/sh\n#Tune mode=apply\n#tune knob cores values=1,2\n", true, 0, 0, 2},
		{"with one and a line that is none", "#!/bin/sh\n#TUNE mode=observe\n# TUNE knob cores values=1,2\n", true, 0, 0, 1},
		{"with a fault and a line that is none", "#!/bin/sh\n#TUNE mood=observe\n# TUNE search trials=9\n", false, 1, 2, 1},
		{"with remarks about tuning", "#!/bin/sh\n# Tune the learning rate when a=b\n# tune\n##TUNE mode=apply\n# #TUNE mode=apply\ntrue\n# TUNE mode=x\n", true, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := verdict.Of(detect.Parse, "job.sh", []byte(c.text), nil)
			if v.Valid != c.valid || len(v.Errors) != c.faults || len(v.Warnings) != c.warnings ||
				strings.Count(verdict.Text(v), ": warning: a comment that looks like a tuning line; want #TUNE") != c.warnings || v.File != "job.sh" {
				t.Fatalf("%+v", v)
			}
			if c.faults > 0 {
				if f := v.Errors[0]; f.Line != c.line || f.Column == 0 || f.Found == "" || f.Want == "" || !strings.HasPrefix(verdict.Text(v), "job.sh:2:") {
					t.Errorf("%+v", f)
				}
			}
			if has := v.Policy != nil; has != (v.Note == "valid") || has && (v.Policy.Mode != tuning.Observe || v.Text == "") {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestAJobThatIsTooLargeForItsSchedulerIsNotValid(t *testing.T) {
	t.Parallel()
	fits := func(want driver.Room) error {
		if want.Cores > 2 {
			return errors.New("it asks for 16 cores")
		}
		return nil
	}
	for cores, want := range map[string]string{"2": "", "16": "job.sh: it asks for 16 cores\n"} {
		for _, stanza := range []string{"", "#TUNE mode=observe\n"} {
			v := verdict.Of(detect.Parse, "job.sh", []byte("#!/bin/sh\n#SBATCH -c "+cores+"\n"+stanza), nil, verdict.Ground{Driver: "local", Site: &config.SitePolicy{}, Fits: fits})
			if v.Valid != (want == "") || !v.Valid && verdict.Text(v) != want {
				t.Errorf("%s cores: %q, %+v", cores, verdict.Text(v), v)
			}
		}
	}
}

func TestNothingActsInANamespaceThatTheControllerDoesNotWatch(t *testing.T) {
	t.Parallel()
	const file = `job "j" {
  type      = "batch"
  namespace = "team"
  group "g" {
    tuning {
      mode = "apply"
      knob "cores" { values = [1, 2] }
    }
    task "t" {
      driver = "exec"
      config { command = "true" }
      resources { cores = 2 }
    }
  }
}
`
	for spaces, seen := range map[string]bool{"": true, "default": false, "default team": true, "*": true} {
		ground := verdict.Ground{Driver: "nomad", Site: &config.SitePolicy{}}
		if spaces != "" {
			ground.Spaces = strings.Fields(spaces)
		}
		v := verdict.Of(detect.Parse, "j.nomad", []byte(file), nil, ground)
		if text := verdict.Text(v); !v.Valid || strings.Contains(text, "does not watch namespace team") == seen {
			t.Errorf("watching %q: %s", spaces, text)
		}
	}
}

func TestAJobIsJudgedByWhatIsKnownOfItsPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(path, []byte("partition:\n  main: {max_mode: apply}\nqos:\n  gold: {max_mode: observe}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site, err := config.LoadSite(path)
	if err != nil {
		t.Fatal(err)
	}
	const stanza = "#TUNE mode=apply\n#TUNE knob cores values=1,2\n#TUNE checkpoint signal=USR1 grace=60s exit=85\n#TUNE progress pattern='epoch (?P<epoch>.)/(?P<total>.)'\n"
	const acts, nothing, unknown = "valid; act now, while the job runs: cores", "valid, but nothing can be tuned: ", "valid; the site's policy has rules for its "
	for _, c := range []struct {
		name, options string
		ground        verdict.Ground
		headline      string
		when          tuning.When
	}{
		{"by its file", "-p main -q usual", verdict.Ground{}, acts, tuning.Now},
		{"by its QOS", "-p main --qos=gold", verdict.Ground{}, nothing, tuning.Never},
		{"by the partition of those that name none", "-q usual", verdict.Ground{Default: func() string { return "main" }}, acts, tuning.Now},
		{"by its file before that", "-p night -q usual", verdict.Ground{Default: func() string { return "main" }}, nothing, tuning.Never},
		{"by what the environment says before its file", "-p night -q gold", verdict.Ground{Partition: "main", QOS: "usual"}, acts, tuning.Now},
		{"as unknown where a rule may count", "-q usual", verdict.Ground{}, unknown + "partition,", tuning.Unknown},
		{"as unknown where several may", "-A bio", verdict.Ground{}, unknown + "partition and qos,", tuning.Unknown},
	} {
		c.ground.Driver, c.ground.Can, c.ground.Site = "slurm", driver.Capabilities{Accounts: true}, site
		v := verdict.Of(detect.Parse, "job.sh", []byte("#!/bin/sh\n#SBATCH -c 2 "+c.options+"\n"+stanza), nil, c.ground)
		if p := v.Prospects; !v.Valid || len(p) != 1 || !strings.HasPrefix(p[0].Headline, c.headline) || p[0].Knobs[0].When != c.when {
			t.Errorf("%s: %+v; want %q, %s", c.name, v, c.headline, c.when)
		}
	}
}

func TestTheVerdictOnASearchSaysHowItStarts(t *testing.T) {
	t.Parallel()
	const text = "#!/bin/sh\n#TUNE knob cores values=1\n#TUNE knob lr env=LR values=1,2\n#TUNE progress pattern='(?P<epoch>.)(?P<loss>.)'\n"
	for search, want := range map[string]bool{"#TUNE knob lr default=1\n": false, "#TUNE search epochs=9\n": true} {
		v := verdict.Of(detect.Parse, "job.sh", []byte(text+search), nil, verdict.Ground{Driver: "local", Site: &config.SitePolicy{}})
		if said := strings.Contains(verdict.Text(v), "pitchpipe search run job.sh starts the search for lr"); !v.Valid || said != want {
			t.Errorf("%q: %s", search, verdict.Text(v))
		}
		if knobs := v.Prospects[0].Knobs; (len(knobs) == 1) != want { // a trial has its lr, so that only cores can act in it
			t.Errorf("%q: %v", search, knobs)
		}
	}
}
