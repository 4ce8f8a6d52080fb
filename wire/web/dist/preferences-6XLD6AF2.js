import{a as o}from"./chunk-NXV67ECV.js";import"./chunk-X23SFNAT.js";import"./chunk-VZOZZYE6.js";import"./chunk-4CJ3LAC6.js";export{o as Preferences};
