import{a as o,b as r}from"./chunk-HS3YIHKK.js";import"./chunk-AGF42KRU.js";export{r as ColourCard,o as ColourChoice};
