import{db as r}from"./chunk-JM4UGWP5.js";r();
