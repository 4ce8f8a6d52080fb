package realm

// Account is the part of a user that login needs. It is never changed after it was published: a change makes a new one.
type Account struct {
	Realm    ID
	User     UserID
	Email    string
	Keys     [][32]byte // hashes of the API keys that are valid
	Password string     // Argon2id in PHC form
	Active   bool
	Bot      BotType
	Role     Role
}
