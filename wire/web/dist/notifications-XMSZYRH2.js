import{a as o,b as r}from"./chunk-VI3AMKGU.js";import"./chunk-JIBIK4YA.js";import"./chunk-7LCL5MDI.js";export{r as NotificationFields,o as Notifications};
