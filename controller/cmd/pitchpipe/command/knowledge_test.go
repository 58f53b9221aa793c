package command

import (
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

func TestKnowledgeAsAPersonReadsIt(t *testing.T) {
	t.Parallel()
	cores := func(n float64) tuning.Settings { return tuning.Settings{"cores": tuning.Number(n)} }
	k := api.Knowledge{
		Schema: 1, Observations: 7,
		Model: &api.KnownModel{Name: "m3-00c0ffee", Version: 1, Fits: 3, Confidence: .95, Strata: []api.KnownStratum{
			{Schema: "sw/1", Machine: "xeon/8", Settings: "cores=1", K: 2, Runs: 6, Silhouette: .81},
			{Schema: "sw/1", Machine: "xeon/8", K: 0, Runs: 1},
		}},
		Kinds: []api.KnownKind{
			{
				Kind: "alice/train@1f2e", Runs: 3, Newest: time.Unix(0, 0), Class: "c1", Peak: 1536 << 20, Regressed: []tuning.Settings{cores(8)},
				Effects: []api.KnownEffects{
					{Objective: tuning.Time, Effects: []tuning.Effect{{Settings: cores(4), LogRatio: -.7, SD: .02, Runs: 2, Age: 12.4}, {Settings: cores(2), LogRatio: .1, SD: .2, Runs: 1}}},
					{Objective: tuning.Energy, Sources: []string{"modelled", "rapl"}, Effects: []tuning.Effect{{Settings: cores(4), LogRatio: -.2, SD: .01, Runs: 2, Age: 1}}},
				},
			},
			{Kind: "bob/sort@9a8b", Runs: 1},
		},
		Classes: []api.KnownClass{{ID: "c1", Runs: 4, Kinds: []string{"alice/train@1f2e", "bob/sort@9a8b"}, Effects: []api.KnownEffects{
			{Objective: tuning.EDP, Effects: []tuning.Effect{{Settings: cores(4), LogRatio: -.9, SD: .1, Runs: 4, Age: 3}}},
		}}},
	}
	got := knowledgeText(k) + "----\n" + knowledgeText(api.Knowledge{})
	fixtures.Golden(t, *update, "testdata/knowledge.txt", got)
}
