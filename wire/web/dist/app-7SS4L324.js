import{eb as r}from"./chunk-65TW3HXW.js";r();
