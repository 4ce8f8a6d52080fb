import{a as o,b as r}from"./chunk-XP53RJJS.js";import"./chunk-N76PAOFV.js";export{r as ColourCard,o as ColourChoice};
