package codec

import (
	"fmt"

	"parley/actors/realm"
)

// EncodeBatch encodes a batch for another process.
func EncodeBatch(b *realm.Batch) []byte { return marshal(nil, b) }

// DecodeBatch decodes a batch that EncodeBatch encoded.
func DecodeBatch(data []byte) (b realm.Batch, err error) {
	if err = unmarshal(data, &b); err != nil {
		err = fmt.Errorf("decode batch: %w", err)
	}
	return b, err
}

// DecodeFacts decodes the facts of a batch and gives each its message texts.
func DecodeFacts(b *realm.Batch) ([]realm.Fact, error) {
	facts := make([]realm.Fact, len(b.Facts))
	for i, data := range b.Facts {
		f, err := DecodeFact(data)
		if err != nil {
			return nil, fmt.Errorf("fact %d of realm %d: %w", b.After+realm.Seq(i)+1, b.Realm, err)
		}
		facts[i] = f
	}
	b.FillTexts(facts)
	return facts, nil
}
