import{a as o,b as r}from"./chunk-ER6EZRH7.js";import"./chunk-JEE5GVB6.js";import"./chunk-HNC2SEK3.js";import"./chunk-JGPML2EU.js";export{r as NotificationFields,o as Notifications};
