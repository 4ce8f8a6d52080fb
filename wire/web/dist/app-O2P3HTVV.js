import{db as r}from"./chunk-YB3CZXZX.js";r();
