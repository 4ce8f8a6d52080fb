package wire

import (
	"errors"

	"parley/actors/realm"
	"parley/wire/form"
)

// userAdminEndpoints are the endpoints with which administrators manage accounts.
var userAdminEndpoints = []Endpoint{
	CommandFromCall("POST", "/users", createUser, func(id realm.UserID) *createdUserAnswer {
		return &createdUserAnswer{id}
	}),
	Get("/users/{user_id}", getUser),
	Get("/users/{email}", getUserByEmail),
	CommandFromCall("PATCH", "/users/{user_id}", editUser, emptyAnswer),
	CommandFromCall("PATCH", "/users/{email}", editUserByEmail, emptyAnswer),
	CommandFromCall("DELETE", "/users/{user_id}", deactivate, emptyAnswer),
	CommandFromCall("DELETE", "/users/me", func(c *Call, _ noParameters) (realm.DeactivateUser, error) {
		return realm.DeactivateUser{Self: true}, c.confirmOwnerChange(c.Caller.User, "", nil)
	}, emptyAnswer),
	CommandFromCall("POST", "/users/{user_id}/reactivate", func(c *Call, f userIDForm) (realm.ReactivateUser, error) {
		return realm.ReactivateUser{User: f.User}, c.confirmOwnerChange(f.User, "", nil)
	}, emptyAnswer),
}

type createdUserAnswer struct {
	User realm.UserID `json:"user_id"`
}

type userAnswer struct {
	User userJSON `json:"user"`
}

type userIDForm struct {
	User realm.UserID `path:"user_id"`
}

type deactivateForm struct {
	userIDForm
	Comment form.Opt[string] `form:"deactivation_notification_comment,maxlen=2000"`
	Actions struct {
		Profile bool `form:"delete_profile"`
		Public  bool `form:"delete_public_channel_messages"`
		Private bool `form:"delete_private_channel_messages"`
		Direct  bool `form:"delete_direct_messages"`
	} `form:"actions"`
}

func deactivate(c *Call, f deactivateForm) (realm.DeactivateUser, error) {
	cmd := realm.DeactivateUser{User: f.User, Actions: realm.DeactivationActions(f.Actions)}
	if f.Comment.Set && c.Tools.Emails != nil {
		cmd.FarewellEmail = func(u *realm.User, h realm.Letterhead) realm.Email {
			return c.Tools.Emails.AccountDeactivated(u, h, f.Comment.Value, c.Site)
		}
	}
	return cmd, c.confirmOwnerChange(f.User, "", nil)
}

type createUserForm struct {
	Email    string `form:"email,required,strip"`
	Password string `form:"password,required"`
	Name     string `form:"full_name,required,strip"`
}

func createUser(c *Call, f createUserForm) (realm.CreateUser, error) {
	// Name and address are checked before the password, which is expensive to hash.
	err := checkPermission(c, func(v realm.View) error { return v.CheckNewUser(f.Email, f.Name) })
	if err != nil {
		return realm.CreateUser{}, err
	}
	hash, err := c.Tools.HashPassword(c.Realm, f.Password)
	if errors.Is(err, ErrWeakPassword) {
		err = errWeakPassword()
	}
	return realm.CreateUser{Email: f.Email, Name: f.Name, Password: hash}, err
}

// errWeakPassword refuses the password of a new account.
func errWeakPassword() error { return realm.BadRequest("The password is too weak.") }

type getUserForm struct {
	User     realm.UserID `path:"user_id"`
	Gravatar bool         `form:"client_extavatar,alias=client_gravatar,default=true"`
	Profile  bool         `form:"include_custom_profile_fields"`
}

func getUser(c *Call, v realm.View, f getUserForm) (*userAnswer, error) {
	u := v.Find(f.User)
	if u == nil || u.System { // clients know system bots from the registration
		return nil, realm.BadRequest("No such user")
	}
	if !v.MaySeeUser(u) {
		return nil, realm.BadRequest("Insufficient permission")
	}
	return &userAnswer{newUserJSON(v, u, c.Site, f.Gravatar, f.Profile)}, nil
}

type getUserByEmailForm struct {
	Email    string `path:"email"`
	Gravatar bool   `form:"client_extavatar,alias=client_gravatar,default=true"`
	Profile  bool   `form:"include_custom_profile_fields"`
}

func getUserByEmail(c *Call, v realm.View, f getUserByEmailForm) (*userAnswer, error) {
	u := findByAddress(v, f.Email, c.Site)
	if u == nil {
		return nil, realm.BadRequest("No such user")
	}
	if !v.MaySeeUser(u) {
		return nil, realm.BadRequest("Insufficient permission")
	}
	return &userAnswer{newUserJSON(v, u, c.Site, f.Gravatar, f.Profile)}, nil
}

type editUserFields struct {
	Name     form.Opt[string]     `form:"full_name"`
	Role     form.Opt[realm.Role] `form:"role,in=100|200|300|400|600"`
	Profile  []profileItem        `form:"profile_data"`
	NewEmail form.Opt[string]     `form:"new_email,strip"`
}

type profileItem struct {
	ID    int64      `form:"id,required"`
	Value form.Value `form:"value,required"`
}

type editUserForm struct {
	User realm.UserID `path:"user_id"`
	editUserFields
}

type editUserByEmailForm struct {
	Email string `path:"email"`
	editUserFields
}

func editUser(c *Call, f editUserForm) (realm.EditUser, error) { return f.command(c, f.User, "") }

func editUserByEmail(c *Call, f editUserByEmailForm) (realm.EditUser, error) {
	return f.command(c, 0, f.Email)
}

func (f editUserFields) command(c *Call, id realm.UserID, email string) (realm.EditUser, error) {
	cmd := realm.EditUser{User: id, Email: email}
	if f.Name.Set {
		cmd.Name = &f.Name.Value
	}
	if f.Role.Set {
		cmd.Role = &f.Role.Value
	}
	if f.NewEmail.Set {
		cmd.NewEmail = &f.NewEmail.Value
	}
	values, err := profileValues("profile_data", f.Profile)
	cmd.Profile = values
	if err == nil && f.NewEmail.Set {
		err = c.confirmOwnerChange(id, email, nil)
	}
	if err == nil && f.Role.Set {
		err = c.confirmOwnerChange(id, email, cmd.Role)
	}
	return cmd, err
}

// profileValues converts values that can be a text, null or a list of user ids.
func profileValues(name string, items []profileItem) (out []realm.ProfileValue, err error) {
	for n, item := range items {
		v := realm.ProfileValue{Field: item.ID}
		switch x := item.Value.Any().(type) {
		case nil:
		case string:
			v.Value = &x
		default:
			ids, e := item.Value.Ints()
			if e != nil {
				return nil, e.Key("value").Index(n).Named(name)
			}
			for _, id := range ids {
				v.Users = append(v.Users, realm.UserID(id))
			}
		}
		out = append(out, v)
	}
	return out, nil
}
