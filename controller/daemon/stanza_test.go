package daemon_test

import (
	"strings"
	"testing"

	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// TestWhatIsWrongWithAStanzaStandsInTheStory: a scheduler takes a job whatever its stanza says,
// and Slurm's submission plugin refuses only what is surely wrong.
func TestWhatIsWrongWithAStanzaStandsInTheStory(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Sim: sim.Config{}})
	for name, tt := range map[string]struct{ line, reason, want string }{
		"a value that no job can have":    {"#TUNE knob cores values=0,x", "bad-stanza", `a value of cores is "x"`},
		"a pattern that does not compile": {"#TUNE progress pattern='('", "bad-stanza", "pattern does not compile"},
		"a knob without a way to the job": {"#TUNE knob batch values=1,2 default=1", "bad-stanza", "nothing carries"},
		"a blank before the word":         {"# TUNE knob cores values=1,2", "no-stanza", "a comment that looks like a tuning line"},
		"a colon behind the word":         {"#TUNE: knob cores values=1,2", "no-stanza", "a comment that looks like a tuning line"},
		"no blank behind the word":        {"#TUNEknob cores values=1,2", "no-stanza", "a comment that looks like a tuning line"},
	} {
		t.Run(name, func(t *testing.T) {
			started, err := c.Cluster.Start(t.Context(), driver.RequestID(name), driver.Spec{Owner: me(t), Filename: "job.sh", Source: daemontest.Script("train", 2, 0.05, tt.line)})
			if err != nil {
				t.Fatal(err)
			}
			id := string(started.ID)
			job := c.Until(t, id, daemontest.Ended)
			story, err := c.Client.Explain(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, l := range story.Lines {
				text.WriteString(l.Text + "\n")
			}
			if string(job.Reason) != tt.reason || !strings.Contains(text.String(), tt.want) {
				t.Errorf("the reason is %q and the story\n%s\nwant %q with %q", job.Reason, text.String(), tt.reason, tt.want)
			}
		})
	}
}
