import{db as r}from"./chunk-NIZ6D3DO.js";r();
